// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	inventoryv1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

var (
	testKey = connection.Key{Source: "capi", Namespace: "team-a", Name: "w1"}
	before  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now     = before.Add(time.Hour)
)

func testCluster(modify ...func(*connection.Cluster)) connection.Cluster {
	c := connection.Cluster{
		Name: "capi/team-a/w1",
		Enrolment: connection.Enrolment{
			Object: connection.ObjectReference{
				GroupVersionKind: schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
				Namespace:        "team-a", Name: "w1", UID: "object-1",
			},
			Class: "default",
		},
		State:               connection.StateConnected,
		Reason:              fleetv1alpha1.ReasonConnected,
		ControlPlaneHealthy: metav1.ConditionTrue,
		KubernetesVersion:   "v1.36.3",
		UID:                 "cluster-1",
	}
	for _, m := range modify {
		m(&c)
	}
	return c
}

// published is the profile as it is after testCluster was published at the time before.
func published(modify ...func(*inventoryv1alpha1.ClusterProfile)) *inventoryv1alpha1.ClusterProfile {
	p := desiredMetadata(testKey, testCluster())
	p.UID, p.Generation = "profile-1", 1
	p.Status = desiredStatus(testKey, testCluster(), nil, nil, 1, before)
	for _, m := range modify {
		m(p)
	}
	return p
}

func properties(at time.Time, pairs ...string) []inventoryv1alpha1.Property {
	var list []inventoryv1alpha1.Property
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, inventoryv1alpha1.Property{
			Name: "fleet.masthead.dev/" + pairs[i], Value: pairs[i+1], LastObservedTime: metav1.NewTime(at),
		})
	}
	return list
}

func TestDesiredStatus(t *testing.T) {
	cases := map[string]struct {
		reason         string
		cluster        connection.Cluster
		existing       *inventoryv1alpha1.ClusterProfile
		wantVersion    string
		wantProperties []inventoryv1alpha1.Property
	}{
		"New": {
			reason:      "Everything is observed now.",
			cluster:     testCluster(),
			wantVersion: "v1.36.3",
			wantProperties: properties(now, "cluster-identifier", "cluster-1", "cluster-uid", "cluster-1",
				"enrollment-class", "default", "source", "capi"),
		},
		"Unchanged": {
			reason:      "A value that is seen again keeps the time at which it was first seen, so that nothing is written.",
			cluster:     testCluster(),
			existing:    published(),
			wantVersion: "v1.36.3",
			wantProperties: properties(before, "cluster-identifier", "cluster-1", "cluster-uid", "cluster-1",
				"enrollment-class", "default", "source", "capi"),
		},
		"ClassChanged": {
			reason:      "Only the property that changed gets a new time.",
			cluster:     testCluster(func(c *connection.Cluster) { c.Enrolment.Class = "gold" }),
			existing:    published(),
			wantVersion: "v1.36.3",
			wantProperties: append(append(
				properties(before, "cluster-identifier", "cluster-1", "cluster-uid", "cluster-1"),
				properties(now, "enrollment-class", "gold")...),
				properties(before, "source", "capi")...),
		},
		"Identifier": {
			reason:      "The identifier of the enrolment wins over the UID.",
			cluster:     testCluster(func(c *connection.Cluster) { c.Enrolment.Identifier = "prod" }),
			wantVersion: "v1.36.3",
			wantProperties: properties(now, "cluster-identifier", "prod", "cluster-uid", "cluster-1",
				"enrollment-class", "default", "source", "capi"),
		},
		"NotConnectedAfterRestart": {
			reason: "A manager that has not connected yet knows nothing, and must not forget what the last one published.",
			cluster: testCluster(func(c *connection.Cluster) {
				c.State, c.UID, c.KubernetesVersion = connection.StateConnecting, "", ""
			}),
			existing:    published(),
			wantVersion: "v1.36.3",
			wantProperties: properties(before, "cluster-identifier", "cluster-1", "cluster-uid", "cluster-1",
				"enrollment-class", "default", "source", "capi"),
		},
		"IdentityChanged": {
			reason: "What a refused connection led to must not replace what this enrolment was.",
			cluster: testCluster(func(c *connection.Cluster) {
				c.State, c.Reason = connection.StateBackoff, fleetv1alpha1.ReasonClusterIdentityChanged
				c.UID, c.KubernetesVersion = "cluster-2", "v1.99.0"
			}),
			existing:    published(),
			wantVersion: "v1.36.3",
			wantProperties: properties(before, "cluster-identifier", "cluster-1", "cluster-uid", "cluster-1",
				"enrollment-class", "default", "source", "capi"),
		},
		"Duplicate": {
			reason: "A refused cluster that was never connected has no identity of its own.",
			cluster: testCluster(func(c *connection.Cluster) {
				c.State, c.Reason = connection.StateBackoff, fleetv1alpha1.ReasonDuplicateCluster
				c.Enrolment.Identifier = "prod"
			}),
			wantProperties: properties(now, "enrollment-class", "default", "source", "capi"),
		},
		"ObjectRecreated": {
			reason: "Another object of the same name is another enrolment: what the first one led to is forgotten.",
			cluster: testCluster(func(c *connection.Cluster) {
				c.Enrolment.Object.UID = "object-2"
				c.State, c.UID, c.KubernetesVersion = connection.StatePending, "", ""
			}),
			existing:       published(),
			wantProperties: properties(before, "enrollment-class", "default", "source", "capi"),
		},
		"DegradedKeepsTheIdentity": {
			reason:      "While probes fail the connection is still the accepted one.",
			cluster:     testCluster(func(c *connection.Cluster) { c.State = connection.StateDegraded }),
			existing:    published(),
			wantVersion: "v1.36.3",
			wantProperties: properties(before, "cluster-identifier", "cluster-1", "cluster-uid", "cluster-1",
				"enrollment-class", "default", "source", "capi"),
		},
		"TooLong": {
			reason: "A value that does not fit is left out, since a part of it would be untrue; a version is cut.",
			cluster: testCluster(func(c *connection.Cluster) {
				c.Enrolment.Identifier = strings.Repeat("i", maxPropertyLength+1)
				c.KubernetesVersion = strings.Repeat("v", 100)
			}),
			wantVersion: strings.Repeat("v", maxVersionLength-1) + "…",
			wantProperties: properties(now, "cluster-uid", "cluster-1",
				"enrollment-class", "default", "source", "capi"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := desiredStatus(testKey, tc.cluster, nil, tc.existing, 1, now)
			if got.Version.Kubernetes != tc.wantVersion {
				t.Errorf("%s\nversion: want %q, got %q", tc.reason, tc.wantVersion, got.Version.Kubernetes)
			}
			if diff := cmp.Diff(tc.wantProperties, got.Properties); diff != "" {
				t.Errorf("%s\nproperties: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestStamp(t *testing.T) {
	previous := []metav1.Condition{
		{Type: "A", Status: "True", LastTransitionTime: metav1.NewTime(before), ObservedGeneration: 1},
		{Type: "B", Status: "True", LastTransitionTime: metav1.NewTime(before), ObservedGeneration: 1},
	}
	current := []metav1.Condition{
		{Type: "A", Status: "True", Reason: "New"}, {Type: "B", Status: "False"}, {Type: "C", Status: "True"},
	}
	want := []metav1.Condition{
		{Type: "A", Status: "True", Reason: "New", LastTransitionTime: metav1.NewTime(before), ObservedGeneration: 2},
		{Type: "B", Status: "False", LastTransitionTime: metav1.NewTime(now), ObservedGeneration: 2},
		{Type: "C", Status: "True", LastTransitionTime: metav1.NewTime(now), ObservedGeneration: 2},
	}
	if diff := cmp.Diff(want, stamp(previous, current, 2, now)); diff != "" {
		t.Errorf("The time changes with the status and not with the reason: -want, +got:\n%s", diff)
	}
}

func TestDiffers(t *testing.T) {
	cases := map[string]struct {
		reason       string
		cluster      connection.Cluster
		existing     *inventoryv1alpha1.ClusterProfile
		wantMetadata bool
		wantStatus   bool
	}{
		"Same": {
			reason:  "Nothing is written when nothing changed.",
			cluster: testCluster(), existing: published(),
		},
		"OthersAddedSomething": {
			reason:  "Labels, owners, conditions and properties of others are theirs.",
			cluster: testCluster(),
			existing: published(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Labels["region"] = "eu"
				p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{Name: "other"})
				p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: "Theirs"})
				p.Status.Properties = append(p.Status.Properties, inventoryv1alpha1.Property{Name: "region", Value: "eu"})
			}),
		},
		"LabelChanged": {
			reason:  "What is ours and was altered is put back.",
			cluster: testCluster(),
			existing: published(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Annotations[fleetv1alpha1.ClusterNameAnnotation] = "x"
			}),
			wantMetadata: true,
		},
		"DisplayNameChanged": {
			reason:       "The spec is ours.",
			cluster:      testCluster(),
			existing:     published(func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.DisplayName = "x" }),
			wantMetadata: true,
		},
		"ObjectRecreated": {
			reason:       "The profile belongs to the object that is enrolled now.",
			cluster:      testCluster(func(c *connection.Cluster) { c.Enrolment.Object.UID = "object-2" }),
			existing:     published(),
			wantMetadata: true,
		},
		"VersionChanged": {
			reason:     "An upgrade is published.",
			cluster:    testCluster(func(c *connection.Cluster) { c.KubernetesVersion = "v1.37.0" }),
			existing:   published(),
			wantStatus: true,
		},
		"PropertyOfOursIsStale": {
			reason:  "A property of ours that is no longer true has to go.",
			cluster: testCluster(),
			existing: published(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Properties = append(p.Status.Properties, properties(before, "old", "x")...)
			}),
			wantStatus: true,
		},
		"ConditionChanged": {
			reason: "A lost connection is published.",
			cluster: testCluster(func(c *connection.Cluster) {
				c.State, c.Reason = connection.StateBackoff, fleetv1alpha1.ReasonDialError
			}),
			existing:   published(),
			wantStatus: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := metadataDiffers(tc.existing, desiredMetadata(testKey, tc.cluster)); got != tc.wantMetadata {
				t.Errorf("%s\nmetadataDiffers: want %v, got %v", tc.reason, tc.wantMetadata, got)
			}
			status := desiredStatus(testKey, tc.cluster, nil, tc.existing, 1, now)
			if got := statusDiffers(tc.existing, status); got != tc.wantStatus {
				t.Errorf("%s\nstatusDiffers: want %v, got %v", tc.reason, tc.wantStatus, got)
			}
		})
	}
}

func TestConditionsWhileConnecting(t *testing.T) {
	connecting := func(c *connection.Cluster) {
		c.State, c.Reason, c.Message = connection.StateConnecting, fleetv1alpha1.ReasonConnecting, "The connection is being established"
	}
	cases := map[string]struct {
		reason   string
		cluster  connection.Cluster
		existing *inventoryv1alpha1.ClusterProfile
		want     metav1.Condition
	}{
		"FirstTime": {
			reason:  "A cluster that was never connected is not.",
			cluster: testCluster(connecting),
			want: metav1.Condition{
				Type: fleetv1alpha1.ConditionConnected, Status: "False", Reason: fleetv1alpha1.ReasonConnecting,
				Message: "The connection is being established", LastTransitionTime: metav1.NewTime(now), ObservedGeneration: 1,
			},
		},
		"AfterRestart": {
			reason:   "A restart of the manager says nothing about the cluster.",
			cluster:  testCluster(connecting),
			existing: published(),
			want: metav1.Condition{
				Type: fleetv1alpha1.ConditionConnected, Status: "True", Reason: fleetv1alpha1.ReasonConnected,
				LastTransitionTime: metav1.NewTime(before), ObservedGeneration: 1,
			},
		},
		"ObjectRecreated": {
			reason: "What was published about another object says nothing about this one.",
			cluster: testCluster(connecting, func(c *connection.Cluster) {
				c.Enrolment.Object.UID = "object-2"
			}),
			existing: published(),
			want: metav1.Condition{
				Type: fleetv1alpha1.ConditionConnected, Status: "False", Reason: fleetv1alpha1.ReasonConnecting,
				Message: "The connection is being established", LastTransitionTime: metav1.NewTime(now), ObservedGeneration: 1,
			},
		},
		"Outcome": {
			reason: "The outcome of the attempt is published at once.",
			cluster: testCluster(func(c *connection.Cluster) {
				c.State, c.Reason, c.Message = connection.StateBackoff, fleetv1alpha1.ReasonDialError, "No answer"
			}),
			existing: published(),
			want: metav1.Condition{
				Type: fleetv1alpha1.ConditionConnected, Status: "False", Reason: fleetv1alpha1.ReasonDialError, Message: "No answer",
				LastTransitionTime: metav1.NewTime(now), ObservedGeneration: 1,
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			status := desiredStatus(testKey, tc.cluster, nil, tc.existing, 1, now)
			got := meta.FindStatusCondition(status.Conditions, fleetv1alpha1.ConditionConnected)
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParsePin(t *testing.T) {
	ofCluster := schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"}
	cases := map[string]struct {
		reason  string
		profile *inventoryv1alpha1.ClusterProfile
		want    connection.Pin
		wantOK  bool
	}{
		"Connected": {
			reason:  "A cluster that was connected is pinned to what it led to.",
			profile: published(),
			want:    connection.Pin{UID: "cluster-1", Identifier: "cluster-1", ObjectUID: "object-1", Kind: ofCluster, Reason: fleetv1alpha1.ReasonConnected, Class: "default"},
			wantOK:  true,
		},
		"ClassFull": {
			reason: "One for which its class had no place keeps none.",
			profile: published(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Conditions = []metav1.Condition{{Type: fleetv1alpha1.ConditionConnected, Status: metav1.ConditionFalse, Reason: fleetv1alpha1.ReasonClassFull}}
			}),
			want:   connection.Pin{UID: "cluster-1", Identifier: "cluster-1", ObjectUID: "object-1", Kind: ofCluster, Reason: fleetv1alpha1.ReasonClassFull},
			wantOK: true,
		},
		"NeverConnected": {
			reason: "A cluster that was never connected is not pinned.",
			profile: published(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Status.Properties = properties(before, "source", "capi")
			}),
		},
		"Foreign": {
			reason:  "Another cluster manager's profile pins nothing.",
			profile: published(func(p *inventoryv1alpha1.ClusterProfile) { p.Spec.ClusterManager.Name = "other" }),
		},
		"ForAnotherNamespace": {
			reason: "A profile cannot pin a cluster of another tenant.",
			profile: published(func(p *inventoryv1alpha1.ClusterProfile) {
				p.Annotations[fleetv1alpha1.ClusterNameAnnotation] = "capi/team-b/w1"
			}),
		},
		"TwoOwners": {
			reason: "With two owners it is not known which of them was connected.",
			profile: published(func(p *inventoryv1alpha1.ClusterProfile) {
				p.OwnerReferences = append(p.OwnerReferences, metav1.OwnerReference{UID: "object-0"})
			}),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, got, ok := parsePin(tc.profile)
			if ok != tc.wantOK {
				t.Errorf("%s\npinOf: want %v, got %v", tc.reason, tc.wantOK, ok)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
