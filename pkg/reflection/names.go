// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package reflection

import (
	"regexp"
	"strings"

	"github.com/masthead-dev/masthead/pkg/objects"

	"k8s.io/apimachinery/pkg/util/validation"
)

// DeniedName is the last part of the name of the identity that providers must refuse.
const DeniedName = "denied"

// Bounds on what is read of one cluster: far above what a cloud allows by default, and low enough for one import to
// cost the hub little. What is beyond a bound is reported as lossy.
const (
	MaxNodePools       = 100
	MaxFargateProfiles = 50
	MaxSubnets         = 50
	maxLabels          = 100
	maxTaints          = 64
	maxListed          = 50
	maxTags            = 200
	maxNodes           = 50_000
	maxCapacity        = 100
	maxText            = 1024
	maxLossy           = 200
)

// grammar is a cloud's syntax of names. A name becomes a part of the identifier by which a provider looks a resource up
// (".../agentPools/<name>"), so one with other characters could make it look up something else. Node labels, which the
// owner of the imported cluster writes, are checked against it as well.
type grammar struct {
	cluster, pool, place *regexp.Regexp
	// caseless says that names have no case: "Shop" is "shop".
	caseless bool
	// azureRegion is nil where the place is, or has, the region.
	azureRegion *regexp.Regexp
	placeName   string
	// poolLabel is the Node label that names a Node's pool.
	poolLabel string
}

func (g grammar) same(a, b string) bool { return a == b || g.caseless && strings.EqualFold(a, b) }

const hashLength = 12

// ManagedName is the name of the managed resource that observes the external resource. Cluster-scoped names include the
// namespace, so that a reader finds the import; the hash covers all that makes it unique, including the ClusterImport's
// UID.
func ManagedName(imp Import, kind Kind, namespaced bool, id string) string {
	prefix := "imp-" + imp.Namespace + "-" + imp.Name
	if namespaced {
		prefix = "imp-" + imp.Name
	}
	return withHash(dnsLabel(prefix), objects.DigestParts(imp.Namespace, imp.Name, string(imp.UID), kind.Family, kind.Kind, id)[:hashLength])
}

// PoolName is the name of the objects that reflect a node pool: "<cluster>-<pool>", as far as that is a DNS label, with
// a hash. Without the hash the pool "eu-workers" of "prod" would have the name of the pool "workers" of "prod-eu". The
// name depends on nothing else, so a pool keeps it when others come and go.
func PoolName(cluster, pool string) string {
	return withHash(dnsLabel(cluster+"-"+pool), objects.DigestParts(cluster, pool)[:hashLength])
}

func withHash(name, hash string) string {
	const most = validation.DNS1123LabelMaxLength - hashLength - 1
	if len(name) > most {
		name = name[:most]
	}
	return strings.TrimRight(name, "-") + "-" + hash
}

// dnsLabel keeps of a name what may stand in a DNS label. It may be too long.
func dnsLabel(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '-'
		}
	}, name)
	name = strings.Trim(name, "-")
	if name == "" {
		return "x"
	}
	return name
}

// deniedName is the name of the identity that the provider must refuse, and of the Secret that it must not find.
func (i Import) deniedName() string {
	return withHash(dnsLabel("imp-"+i.Namespace+"-"+i.Name), objects.DigestParts(i.Namespace, i.Name, string(i.UID), DeniedName)[:hashLength])
}
