// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/masthead-dev/masthead/internal/test/fakecloud/layouts"
)

// AddLayout creates everything of a layout, in the subscription and project that providers use by default.
func (c *Cloud) AddLayout(f layouts.Fixture) {
	whole := ""
	for _, r := range f.Resources {
		i := slices.IndexFunc(kinds(), func(kind string) bool {
			return strings.HasPrefix(kind, r.Family+".") && strings.HasSuffix(kind, "/"+r.Kind)
		})
		if i < 0 {
			panic(fmt.Sprintf("there is no managed resource of the kind %s.%s", r.Family, r.Kind))
		}
		is := resourceID{kind: kinds()[i]}
		switch is.kind {
		case kindEKSNodeGroup, kindEKSFargate:
			is.id = id(f.Place, f.ClusterName, r.ExternalName)
		case kindAKSCluster:
			is.id = aksClusterID(DefaultSubscriptionID, f.Place, f.ClusterName)
			whole, _ = r.AtProvider["id"].(string)
		case kindAKSNodePool:
			is.id = id(whole, "agentPools", r.ExternalName)
		case kindGKECluster:
			is.id = id(DefaultProjectID, f.Place, r.ExternalName)
		default:
			is.id = id(f.Place, r.ExternalName)
		}
		c.add(is, &cloudResource{atProvider: runtime.DeepCopyJSON(r.AtProvider)})
	}
}
