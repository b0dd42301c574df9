// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/controllers/inventory"
	"github.com/masthead-dev/masthead/pkg/providers/capi"
	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
	"github.com/masthead-dev/masthead/pkg/providers/kubeconfig"
)

// State is the state of a cluster, in one word.
type State string

const (
	// StateConnected means that Masthead is connected to the cluster.
	StateConnected State = "Connected"

	// StateDegraded means that probes fail, but the cluster does not count as lost yet.
	StateDegraded State = "Degraded"

	// StateNotConnected means that there is no working connection.
	StateNotConnected State = "NotConnected"

	// StateUnknown means that no Masthead has published the state of the cluster.
	StateUnknown State = "Unknown"
)

// ReasonNotPublished is the reason for Unknown: the enrolled object has no ClusterProfile, or that has no condition
// Connected.
const ReasonNotPublished = "NotPublished"

// A Cluster is an enrolled cluster, as the hub describes it.
type Cluster struct {
	// Name is <source>/<namespace>/<name>.
	Name string `json:"name"`

	State State `json:"state"`

	// Reason is that of the condition Connected or, of a connected cluster, of the first condition that is False.
	Reason string `json:"reason,omitempty"`

	// Message belongs to the reason.
	Message string `json:"message,omitempty"`

	// Class is the EnrollmentClass that the cluster names.
	Class string `json:"class,omitempty"`

	// Version is the last known Kubernetes version.
	Version string `json:"version,omitempty"`

	// Identifier is the cluster's identifier on its claims in the hub.
	Identifier string `json:"identifier,omitempty"`

	// LastSeen is when the cluster was last known to be reachable. It is absent for a connected cluster, and where it was
	// not recorded.
	LastSeen *time.Time `json:"lastSeen,omitempty"`

	// Profile names the ClusterProfile.
	Profile string `json:"profile,omitempty"`

	key connection.Key

	// named is true if the user named the cluster. Who may write ClusterProfiles of a namespace can forge one of the
	// source and what Masthead publishes of it. Then a Secret that consented is sent to a server of theirs, with the
	// rights of a user who lists the whole fleet, also where the manager does not have the source.
	named bool
}

// Key names the enrolled object.
func (c *Cluster) Key() connection.Key { return c.key }

// EnrolledObject is the metadata of an object that has the enrolment label.
type EnrolledObject struct {
	Source string
	Object metav1.Object
}

// Clusters joins what the hub has about its clusters: the enrolled objects, the ClusterProfiles, and the
// ApplicationReports, which record when a cluster was last seen.
func Clusters(
	enrolled []EnrolledObject, profiles []inventoryv1alpha1.ClusterProfile, reports []fleetv1alpha1.ApplicationReport,
) []Cluster {
	byName := map[string]*Cluster{}
	for _, e := range enrolled {
		class, ok := connection.EnrolledClass(e.Object.GetLabels())
		if !ok {
			continue
		}
		key := connection.Key{Source: e.Source, Namespace: e.Object.GetNamespace(), Name: e.Object.GetName()}
		byName[key.String()] = &Cluster{
			Name: key.String(), Class: class, State: StateUnknown, Reason: ReasonNotPublished, key: key,
			Message: "It has no ClusterProfile. Does the manager run, and with this source (--sources)?",
		}
	}
	for i := range profiles {
		if c, ok := newCluster(&profiles[i]); ok {
			byName[c.Name] = c
		}
	}
	seen := map[types.NamespacedName]*metav1.Time{}
	for i := range reports {
		seen[types.NamespacedName{Namespace: reports[i].Namespace, Name: reports[i].Name}] = reports[i].Status.LastSeen
	}
	out := make([]Cluster, 0, len(byName))
	for _, c := range byName {
		if at := seen[c.key.Published()]; at != nil && c.State != StateConnected {
			c.LastSeen = &at.Time
		}
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// newCluster reads a ClusterProfile of Masthead's. It is a copy, and is ignored, if its namespace and name are not
// those of the ClusterProfile of the cluster that it names.
func newCluster(p *inventoryv1alpha1.ClusterProfile) (*Cluster, bool) {
	if p.Spec.ClusterManager.Name != fleetv1alpha1.FieldManager {
		return nil, false
	}
	name := p.Annotations[fleetv1alpha1.ClusterNameAnnotation]
	key, ok := parseKey(name)
	at := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
	if !ok || key.Published() != at {
		return nil, false
	}
	c := &Cluster{
		Name: name, Profile: at.String(), Version: p.Status.Version.Kubernetes, key: key,
	}
	for _, property := range p.Status.Properties {
		switch property.Name {
		case inventory.PropertyEnrollmentClass:
			c.Class = property.Value
		case inventory.PropertyClusterIdentifier:
			c.Identifier = property.Value
		}
	}
	c.State, c.Reason, c.Message = connectionState(p.Status.Conditions)
	return c, true
}

func connectionState(conditions []metav1.Condition) (_ State, reason, message string) {
	connected := meta.FindStatusCondition(conditions, fleetv1alpha1.ConditionConnected)
	if connected == nil {
		return StateUnknown, ReasonNotPublished, "Its ClusterProfile has no condition Connected yet. Does the manager run?"
	}
	switch connected.Status {
	case metav1.ConditionTrue:
		for _, c := range conditions {
			if c.Status == metav1.ConditionFalse {
				return StateConnected, c.Reason, c.Message
			}
		}
		return StateConnected, connected.Reason, connected.Message
	case metav1.ConditionUnknown:
		return StateDegraded, connected.Reason, connected.Message
	default:
		return StateNotConnected, connected.Reason, connected.Message
	}
}

func parseKey(name string) (connection.Key, bool) {
	parts := strings.Split(name, "/")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return connection.Key{}, false
	}
	return connection.Key{Source: parts[0], Namespace: parts[1], Name: parts[2]}, true
}

// Find returns the cluster that the user means: by its name (capi/default/w1), by the name of its ClusterProfile
// (capi-w1), by namespace and name (default/w1), or by the name of the enrolled object alone, if it is unique. By its
// full name it is a copy that is marked as named: a short one can be that of a forged ClusterProfile.
func Find(clusters []Cluster, word string) (*Cluster, error) {
	var found []*Cluster
	for i := range clusters {
		c := &clusters[i]
		switch word {
		case c.Name:
			return c.byName(), nil
		case c.key.Name, c.key.Namespace + "/" + c.key.Name, c.key.Published().Name:
			found = append(found, c)
		}
	}
	names := make([]string, 0, len(clusters))
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		for _, c := range clusters {
			names = append(names, c.Name)
		}
		if len(names) == 0 {
			return nil, fmt.Errorf("there is no cluster %q: no cluster is enrolled", word)
		}
		return nil, fmt.Errorf("there is no cluster %q; there are: %s", word, strings.Join(names, ", "))
	default:
		for _, c := range found {
			names = append(names, c.Name)
		}
		return nil, fmt.Errorf("%q is ambiguous, name one of these clusters: %s", word, strings.Join(names, ", "))
	}
}

func (c *Cluster) byName() *Cluster {
	out := *c
	out.named = true
	return &out
}

// ByIdentifier returns the cluster with the given identifier on its claims in the hub, or nil. One of a ClusterProfile,
// which may be forged, comes after others.
func ByIdentifier(clusters []Cluster, identifier string) *Cluster {
	var found *Cluster
	for i := range clusters {
		if c := &clusters[i]; identifier != "" && c.Identifier == identifier {
			if c.key.Source != clusterprofile.SourceName {
				return c
			}
			found = cmp.Or(found, c)
		}
	}
	return found
}

// kubeconfigSecret names the Secret with the kubeconfig of a cluster.
func kubeconfigSecret(key connection.Key) (types.NamespacedName, error) {
	switch key.Source {
	case capi.SourceName:
		return types.NamespacedName{Namespace: key.Namespace, Name: key.Name + "-kubeconfig"}, nil
	case kubeconfig.SourceName:
		return key.Object(), nil
	default:
		return types.NamespacedName{}, fmt.Errorf("the source %q of the cluster is unknown to this program", key.Source)
	}
}
