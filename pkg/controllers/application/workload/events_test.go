// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
)

func TestRetrievingApplications(t *testing.T) {
	shop, bakery := record.ApplicationKey{Namespace: "ns", Name: "shop"}, record.ApplicationKey{Namespace: "ns", Name: "bakery"}
	w := &Cluster{
		byUID: map[types.UID]record.ApplicationKey{"shop": shop, "bakery": bakery},
		users: map[kindwatch.Kind]sets.Set[record.ApplicationKey]{watchedKind: sets.New(shop, bakery)},
	}
	other := watchedKind
	other.Kind, other.Resource = "Secret", "secrets"
	for _, tc := range []struct {
		name, reason string
		kind         kindwatch.Kind
		record       kindwatch.Record
		want         []record.ApplicationKey
	}{
		{name: "annotation", reason: "It names the Application.", kind: watchedKind, record: &record.Component{Application: shop}, want: []record.ApplicationKey{shop}},
		{name: "no such application", reason: "It is deleted, or not created yet.", kind: watchedKind, record: &record.Component{Application: record.ApplicationKey{Namespace: "ns", Name: "x"}}},
		{name: "other kind", reason: "The Application does not name the kind.", kind: other, record: &record.Component{Application: shop}},
		{name: "owner", reason: "It lost its annotation, and has to lose the reference.", kind: watchedKind, record: &record.Component{Owners: []record.Owner{{UID: "shop"}}}, want: []record.ApplicationKey{shop}},
		{name: "stale owner", reason: "That Application is gone.", kind: watchedKind, record: &record.Component{Owners: []record.Owner{{UID: "old"}}}},
		{name: "both", reason: "It moved from one to another.", kind: watchedKind, record: &record.Component{Application: bakery, Owners: []record.Owner{{UID: "shop"}}}, want: []record.ApplicationKey{shop, bakery}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := w.applicationsFor(tc.kind, &kindwatch.Entry{Record: tc.record})
			if !slices.Equal(got, tc.want) {
				t.Errorf("%s Want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}
