// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestAllows(t *testing.T) {
	selector := func(v string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"fleet": v}}
	}
	type allowed = fleetv1alpha1.AllowedNamespaces
	cases := map[string]struct {
		reason string
		a      *allowed
		want   bool
	}{
		"Absent":        {"A class without allowed namespaces permits none.", nil, false},
		"Empty":         {"Everybody.", &allowed{}, true},
		"Listed":        {"The list names it.", &allowed{List: []string{"other", "team"}}, true},
		"NotListed":     {"The list names others.", &allowed{List: []string{"team-b", "tea"}}, false},
		"Selected":      {"Its labels match.", &allowed{Selector: selector("yes")}, true},
		"NotSelected":   {"Its labels do not.", &allowed{Selector: selector("no")}, false},
		"ListedOnly":    {"Either is enough.", &allowed{List: []string{"team"}, Selector: selector("no")}, true},
		"SelectedOnly":  {"Either is enough.", &allowed{List: []string{"x"}, Selector: selector("yes")}, true},
		"EmptySelector": {"It selects nothing, should one get past the schema.", &allowed{Selector: &metav1.LabelSelector{}}, false},
		"BadSelector": {
			"What cannot be read selects nothing.",
			&allowed{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "fleet", Operator: "Like"}}}}, false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Allows(tc.a, "team", map[string]string{"fleet": "yes"}); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestClassThatArrivesWhileItIsLookedForWakesTheEnrolment lets the watch report a class after the cache was read, and
// before the reconcile is over.
func TestClassThatArrivesWhileItIsLookedForWakesTheEnrolment(t *testing.T) {
	scheme := kruntime.NewScheme()
	if err := fleetv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	src := newFakeSource()
	src.set("a", []byte("x"), func(e *Enrolment) { e.Class = "gold" })
	p, err := New(Options{Sources: []Source{src}, Gate: nopGate{}, RequireClass: true})
	if err != nil {
		t.Fatal(err)
	}
	key := NewKey("fake", nn("a"))
	woken := false
	p.classes.hub = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, k, o, opts...)
			woken = slices.Contains(p.records.ofClass("gold"), key) && slices.Contains(p.records.ofNamespace("ns"), key)
			return err
		},
	}).Build()
	res, err := p.Reconcile(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if state := p.view.clusters[key.ClusterName()].State; state != StatePending || !woken || res.RequeueAfter == 0 {
		t.Errorf("want Pending, woken by the class, and looked at again in any case; got %s %t %s", state, woken, res.RequeueAfter)
	}
}
