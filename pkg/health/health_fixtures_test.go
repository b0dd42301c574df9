// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
)

// fixture is one file in testdata: an object, and its expected health. A folder for a new kind needs no Go.
type fixture struct {
	// Reason explains the expected health.
	Reason string `json:"reason"`

	// Want is the Result. Matches is a pattern for the message, if it is partly foreign.
	Want    Result `json:"want"`
	Matches string `json:"matches,omitempty"`

	// StatusExpected says whether the kind has a status subresource, which is the default.
	StatusExpected *bool `json:"statusExpected,omitempty"`

	// Differs says why the Result differs from that of kstatus. It is set if and only if the Result differs.
	Differs string `json:"differs,omitempty"`

	Object runtime.RawExtension `json:"object"`

	object *unstructured.Unstructured
}

func (f fixture) statusExpected() bool { return f.StatusExpected == nil || *f.StatusExpected }

// fixtures reads testdata.
func fixtures(tb testing.TB) map[string]fixture {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*", "*.yaml"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("found no fixtures (%v)", err)
	}
	all := map[string]fixture{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		var f fixture
		if err := yaml.UnmarshalStrict(data, &f); err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
		// The object is decoded like the API server's answers: a whole number becomes an int64.
		f.object = &unstructured.Unstructured{}
		if err := f.object.UnmarshalJSON(f.Object.Raw); err != nil {
			tb.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(strings.TrimPrefix(path, "testdata/"), ".yaml")] = f
	}
	return all
}

func TestFixtures(t *testing.T) {
	a := New()
	for name, f := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			if f.Reason == "" {
				t.Error("the fixture does not say why")
			}
			before := f.object.DeepCopy()
			got := a.Assess(f.object, f.statusExpected())
			checkValid(t, got)
			if f.Matches != "" {
				if !regexp.MustCompile(f.Matches).MatchString(got.Message) {
					t.Errorf("%s\nwant a message that matches %s, got %q", f.Reason, f.Matches, got.Message)
				}
				got.Message = f.Want.Message
			}
			if diff := cmp.Diff(f.Want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", f.Reason, diff)
			}
			if diff := cmp.Diff(before, f.object); diff != "" {
				t.Errorf("the object was changed:\n%s", diff)
			}
			if again := a.Assess(f.object, f.statusExpected()); again.Health != got.Health || again.Reason != got.Reason {
				t.Errorf("another Result the second time: %+v, then %+v", got, again)
			}
		})
	}
}

// TestAgreesWithKstatus checks that every difference from kstatus is intended: the fixture says why.
func TestAgreesWithKstatus(t *testing.T) {
	agreed := 0
	for name, f := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			theirs, ours := kstatusHealth(f.object), f.Want.Health
			switch {
			case theirs != ours && f.Differs == "":
				t.Errorf("kstatus says %s, the fixture wants %s and does not say why", theirs, ours)
			case theirs == ours && f.Differs != "":
				t.Errorf("kstatus says %s too, and the fixture says that it differs: %s", theirs, f.Differs)
			case theirs == ours:
				agreed++
			}
		})
	}
	if agreed == 0 {
		t.Error("nothing agrees, so the comparison is wrong")
	}
}

// kstatusHealth is what kstatus says, in our words.
func kstatusHealth(object *unstructured.Unstructured) (h appsv1alpha1.Health) {
	defer func() {
		if recover() != nil {
			h = "Panic"
		}
	}()
	result, err := status.Compute(object.DeepCopy())
	if err != nil {
		return appsv1alpha1.HealthUnknown
	}
	return map[status.Status]appsv1alpha1.Health{
		status.CurrentStatus:     appsv1alpha1.HealthHealthy,
		status.InProgressStatus:  appsv1alpha1.HealthProgressing,
		status.TerminatingStatus: appsv1alpha1.HealthProgressing,
		status.FailedStatus:      appsv1alpha1.HealthDegraded,
		status.UnknownStatus:     appsv1alpha1.HealthUnknown,
	}[result.Status]
}
