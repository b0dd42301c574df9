// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestImportsByState(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleetv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	builder := func() *fake.ClientBuilder { return fake.NewClientBuilder().WithScheme(scheme) }
	imports := 0
	with := func(deleting bool, conditions ...string) client.Object {
		imports++
		imp := &fleetv1alpha1.ClusterImport{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: fmt.Sprintf("import-%d", imports)}}
		if deleting {
			imp.Finalizers, imp.DeletionTimestamp = []string{fleetv1alpha1.ImportFinalizer}, new(metav1.Now())
		}
		for _, c := range conditions {
			imp.Status.Conditions = append(imp.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue})
		}
		return imp
	}
	all := builder().WithObjects(
		with(false), with(false, fleetv1alpha1.ConditionObserved), with(false, fleetv1alpha1.ConditionReady),
		with(false, fleetv1alpha1.ConditionStalled), with(false, fleetv1alpha1.ConditionReady, fleetv1alpha1.ConditionStalled),
		with(true), with(true, fleetv1alpha1.ConditionReady), with(true, fleetv1alpha1.ConditionStalled), with(true),
	).Build()
	notCached := builder().WithInterceptorFuncs(interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return errors.New("not cached")
		},
	}).Build()
	for name, tc := range map[string]struct {
		reason                                   string
		hub                                      client.Reader
		progressing, ready, stalled, unimporting int
	}{
		"None":      {reason: "States that no import is in are 0.", hub: builder().Build()},
		"NotCached": {reason: "A replica that does not hold the lease knows none.", hub: notCached},
		"All": {
			reason: "Each is in one state, and before it has a status it progresses.", hub: all,
			progressing: 2, ready: 1, stalled: 2, unimporting: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			registerImports(registry, tc.hub)
			want := fmt.Sprintf(`# HELP masthead_imports ClusterImports by state.
# TYPE masthead_imports gauge
masthead_imports{state="progressing"} %d
masthead_imports{state="ready"} %d
masthead_imports{state="stalled"} %d
masthead_imports{state="unimporting"} %d
`, tc.progressing, tc.ready, tc.stalled, tc.unimporting)
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
				t.Errorf("%s\n%v", tc.reason, err)
			}
		})
	}
}
