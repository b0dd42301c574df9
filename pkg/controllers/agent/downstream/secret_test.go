// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package downstream

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/internal/test/stalekind"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/hubaccess"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

func TestUpToDate(t *testing.T) {
	controller := true
	claim := &metav1.ObjectMeta{UID: "claim"}
	for name, tc := range map[string]struct {
		reason string
		owner  types.UID
		left   index.CopyState
		want   bool
	}{
		"Same":         {reason: "A copy of the known state, as we left it.", owner: "claim", left: index.CopyState{Of: "s/1", Version: "5"}, want: true},
		"AfterRestart": {reason: "After a restart, what it says of itself is not believed.", owner: "claim"},
		"Rotated":      {reason: "A copy of an older state.", owner: "claim", left: index.CopyState{Of: "s/0", Version: "5"}},
		"Tampered":     {reason: "Another client wrote it after us.", owner: "claim", left: index.CopyState{Of: "s/1", Version: "4"}},
		"OtherOwner":   {reason: "Another claim's.", owner: "another", left: index.CopyState{Of: "s/1", Version: "5"}},
	} {
		t.Run(name, func(t *testing.T) {
			have := &metav1.ObjectMeta{ResourceVersion: "5", OwnerReferences: []metav1.OwnerReference{{UID: tc.owner, Controller: &controller}}}
			if got := upToDate(have, claim, "s/1", tc.left); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestIsOrphan(t *testing.T) {
	us := hubidentity.Owner{ID: "hub-a", Predecessors: []hubidentity.Identity{"hub-0"}}
	left := func(change func(*corev1.Secret)) *corev1.Secret {
		s := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Labels: us.Stamp(nil), Annotations: map[string]string{index.HubSecretVersionAnnotation: "s/1"}},
			Type:       crossplane.SecretTypeConnection,
		}
		change(s)
		return s
	}
	for name, tc := range map[string]struct {
		reason          string
		have            *corev1.Secret
		claim, composed bool
	}{
		"Left":        {"The garbage collector took its owner.", left(func(*corev1.Secret) {}), true, true},
		"Predecessor": {"This hub took over from that one.", left(func(s *corev1.Secret) { s.Labels[fleetv1alpha1.HubLabel] = "hub-0" }), true, true},
		"Opaque":      {"Only composites compose such Secrets.", left(func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }), false, true},
		"Token":       {"A ServiceAccount's token is no copy.", left(func(s *corev1.Secret) { s.Type = corev1.SecretTypeServiceAccountToken }), false, false},
		"Owned":       {"It belongs to its owner, of any kind.", left(func(s *corev1.Secret) { s.OwnerReferences = []metav1.OwnerReference{{UID: "x"}} }), false, false},
		"Unmarked":    {"It is not known to be a copy.", left(func(s *corev1.Secret) { s.Annotations = nil }), false, false},
		"Unmanaged":   {"It is not known to be ours.", left(func(s *corev1.Secret) { delete(s.Labels, fleetv1alpha1.ManagedByLabel) }), false, false},
		"Other":       {"It is another hub's.", left(func(s *corev1.Secret) { s.Labels[fleetv1alpha1.HubLabel] = "hub-b" }), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isOrphan(tc.have, crossplane.FormClaim, us); got != tc.claim {
				t.Errorf("%s Want %t for a claim, got %t", tc.reason, tc.claim, got)
			}
			if got := isOrphan(tc.have, crossplane.FormComposite, us); got != tc.composed {
				t.Errorf("%s Want %t for a composite, got %t", tc.reason, tc.composed, got)
			}
		})
	}
}

func TestComposes(t *testing.T) {
	const refs = `'spec':{'crossplane':{'resourceRefs':[{'apiVersion':'v1','kind':'Secret','name':'a'},{'apiVersion':'v1','kind':'ConfigMap','name':'b'},` +
		`{'apiVersion':'example.org/v1','kind':'Secret','name':'c'},'x']}}`
	const synced = `,'status':{'conditions':[{'type':'Synced','status':'True'}]}`
	for name, tc := range map[string]struct {
		reason, composite, secret string
		want                      bool
	}{
		"Referred":     {reason: "Crossplane deletes before it drops the reference.", composite: refs + synced, secret: "a", want: true},
		"NotReferred":  {reason: "Everything is composed, and this is no part of it.", composite: refs + synced, secret: "d"},
		"OtherKind":    {reason: "A ConfigMap of the name is no Secret.", composite: refs + synced, secret: "b"},
		"OtherGroup":   {reason: "Nor is a Secret of another API.", composite: refs + synced, secret: "c"},
		"NotSynced":    {reason: "What Crossplane has not done yet it may still do.", composite: `'spec':{}`, secret: "a", want: true},
		"FailedToSync": {reason: "What fails now may have worked before.", composite: `'spec':{},'status':{'conditions':[{'type':'Synced','status':'False'}]}`, secret: "a", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := composes(agenttest.Parse(t, `{'kind':'Cache','apiVersion':'acmeco.org/v1',`+tc.composite+`}`), tc.secret); got != tc.want {
				t.Errorf("%s want %v, got %v", tc.reason, tc.want, got)
			}
		})
	}
}

func TestIsWithheld(t *testing.T) {
	for value, tc := range map[string]struct {
		reason string
		want   bool
	}{
		"true":  {reason: "The author wants it delivered."},
		"false": {reason: "The author keeps it back.", want: true},
		"False": {reason: "What could mean anything does not hand out a password.", want: true},
		"":      {reason: "Nor does a label without a value.", want: true},
	} {
		if got := isWithheld(&metav1.ObjectMeta{Labels: map[string]string{fleetv1alpha1.DeliverLabel: value}}); got != tc.want {
			t.Errorf("%s want %t for %q, got %t", tc.reason, tc.want, value, got)
		}
	}
	if isWithheld(&metav1.ObjectMeta{Labels: map[string]string{"tier": "gold"}}) {
		t.Error("want a Secret without the label to be delivered")
	}
}

// TestStaleSecretsAreNotBelieved is about Secrets that can no longer be listed or watched.
func TestStaleSecretsAreNotBelieved(t *testing.T) {
	s := &Scope{Workload: index.NewCluster(index.Connection{Watcher: stalekind.Watcher(t, index.OwnedSecretKind)})}
	err := workloadSecretsUnknown(s)
	if p, ok := errors.AsType[*condition.Error](err); !ok || p.Reason != fleetv1alpha1.ReasonSecretRejected {
		t.Errorf("want that to be reported, got %v", err)
	}
}

func TestSecretThatIsNotAnsweredForIsMarked(t *testing.T) {
	if err := secretProblem(errors.New("EOF"), "write", types.NamespacedName{}, "w1"); !hubaccess.IsUnanswered(err) {
		t.Errorf("want an error that says so, got %v", err)
	}
	err := secretProblem(apierrors.NewBadRequest("no"), "write", types.NamespacedName{}, "w1")
	if _, ok := errors.AsType[*condition.Error](err); !ok {
		t.Errorf("want an answer to be reported, got %v", err)
	}
}
