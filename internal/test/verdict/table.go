// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"maps"
	"slices"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A Verdict is what a person would say about an object.
type Verdict string

// The verdicts.
const (
	// Current: what the user requested exists.
	Current Verdict = "Current"
	// InProgress: it does not exist yet, or it is not known whether it exists.
	InProgress Verdict = "InProgress"
	// Failed: it does not exist, and will exist only if a user does something.
	Failed Verdict = "Failed"
	// Suspended: a user has paused it. Argo CD has its own word for that; for the others it is InProgress.
	Suspended Verdict = "Suspended"
	// Terminating: it is being deleted.
	Terminating Verdict = "Terminating"
)

// kstatus is the verdict in the words of kstatus.
func (v Verdict) kstatus() status.Status {
	if v == Suspended {
		return status.InProgressStatus
	}
	return status.Status(v)
}

// argo is the verdict in the words of Argo CD.
func (v Verdict) argo() string {
	switch v {
	case Current:
		return "Healthy"
	case Failed:
		return "Degraded"
	case Suspended:
		return "Suspended"
	case InProgress, Terminating:
		return "Progressing"
	}
	return ""
}

// A Table is every state that the objects of one kind can be in.
type Table struct {
	// Kind is the kind of the objects.
	Kind schema.GroupKind

	// Report is whether the kind only reports about something that is not requested by creating the object, such as the
	// state of another cluster. kstatus by itself finds such an object Current in every state but Terminating, so that it
	// makes no roll-out fail, and users who want to wait for more use the expressions in docs/gitops.md.
	Report bool

	// BuiltIn is whether Argo CD knows the kind itself, or assumes it healthy, so that the page has no health check for
	// it.
	BuiltIn bool

	// Cases are the states by name.
	Cases map[string]Case
}

// A Case is one state.
type Case struct {
	// Reason is why a person would come to this verdict. It is printed if a tool disagrees.
	Reason string

	// Object is in that state.
	Object *unstructured.Unstructured

	// Want is the verdict.
	Want Verdict
}

// Check checks that all tools come to the verdict that the table wants.
func (tb Table) Check(t *testing.T) {
	t.Helper()
	page := gitops(t)
	if len(tb.Cases) == 0 {
		t.Fatalf("the table of %s is empty", tb.Kind)
	}
	for _, name := range slices.Sorted(maps.Keys(tb.Cases)) {
		t.Run(name, func(t *testing.T) {
			tc := tb.Cases[name]
			wantKstatus := tc.Want.kstatus()
			if tb.Report && tc.Want != Terminating {
				wantKstatus = status.CurrentStatus
			}
			if got, err := status.Compute(tc.Object); err != nil || got.Status != wantKstatus {
				t.Errorf("%s\nkstatus: want %s, got %+v, %v\n%v", tc.Reason, wantKstatus, got, err, tc.Object.Object["status"])
			}
			if !tb.BuiltIn {
				if got, err := page.argo(tb.Kind, tc.Object); err != nil || got != tc.Want.argo() {
					t.Errorf("%s\nArgo CD: want %s, got %s, %v\n%v", tc.Reason, tc.Want.argo(), got, err, tc.Object.Object["status"])
				}
			}
			exprs, ok := page.flux[tb.Kind]
			if tb.Report && !ok {
				t.Fatalf("docs/gitops.md has no healthCheckExprs for %s", tb.Kind)
			}
			if ok && tc.Want != Terminating {
				if got, err := exprs.evaluate(tc.Object); err != nil || got != tc.Want.kstatus() {
					t.Errorf("%s\nFlux's healthCheckExprs: want %s, got %s, %v\n%v", tc.Reason, tc.Want.kstatus(), got, err, tc.Object.Object["status"])
				}
			}
		})
	}
}

// Objects are the objects of the table.
func (tb Table) Objects() []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for _, c := range tb.Cases {
		out = append(out, c.Object)
	}
	return out
}

// Object converts a typed object to the form that the tools get.
func Object(t *testing.T, kind schema.GroupVersionKind, typed any) *unstructured.Unstructured {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(kind)
	return u
}
