// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package function

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	testingclock "k8s.io/utils/clock/testing"
)

// answer holds the parts of a response that a test checks.
type answer struct {
	Ready      string
	Connection []string
	Composed   []string
	Fatal      string
	TTL        time.Duration
}

func TestRunFunction(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	complete := []string{"endpoint", "password", "username"}
	cases := map[string]struct {
		reason      string
		namespace   string
		claimed     bool
		annotations map[string]any
		age         time.Duration
		want        answer
	}{
		"Default": {
			reason: "Without annotations, it is ready at once with complete connection details.",
			want:   answer{Ready: "READY_TRUE", Connection: complete, TTL: resultTTL},
		},
		"ConnectionKeys": {
			reason:      "It returns exactly the requested keys.",
			annotations: map[string]any{AnnotationConnectionKeys: "token, endpoint"},
			want:        answer{Ready: "READY_TRUE", Connection: []string{"endpoint", "token"}, TTL: resultTTL},
		},
		"Withheld": {
			reason:      "Ready, but without connection details.",
			annotations: map[string]any{AnnotationWithholdConnection: "true"},
			want:        answer{Ready: "READY_TRUE", TTL: resultTTL},
		},
		"Unready": {
			reason:      "Unready, although the connection details are there.",
			annotations: map[string]any{AnnotationReady: "false"},
			want:        answer{Ready: "READY_FALSE", Connection: complete, TTL: resultTTL},
		},
		"Delayed": {
			reason:      "Before the delay is over nothing is there, and it asks to be called when it is.",
			annotations: map[string]any{AnnotationReadyAfter: "10s"},
			age:         4 * time.Second,
			want:        answer{Ready: "READY_FALSE", TTL: 6 * time.Second},
		},
		"DelayOver": {
			reason:      "After the delay everything is there.",
			annotations: map[string]any{AnnotationReadyAfter: "10s"},
			age:         10 * time.Second,
			want:        answer{Ready: "READY_TRUE", Connection: complete, TTL: resultTTL},
		},
		"Fail": {
			reason:      "With the annotation, it fails and changes nothing.",
			annotations: map[string]any{AnnotationFail: "no money"},
			want:        answer{Ready: "READY_UNSPECIFIED", Fatal: "no money", TTL: resultTTL},
		},
		"ComposedInNamespace": {
			reason:      "A namespaced composite gets its objects in its own namespace.",
			namespace:   "team-a",
			annotations: map[string]any{AnnotationSecrets: "2", AnnotationConfigMaps: "1"},
			want: answer{
				Ready: "READY_TRUE", Connection: complete, TTL: resultTTL,
				Composed: []string{"ConfigMap team-a/db-configmap-0", "Secret team-a/db-secret-0", "Secret team-a/db-secret-1"},
			},
		},
		"ComposedForClaim": {
			reason:      "A claimed composite gets its objects in the namespace of its claim.",
			claimed:     true,
			annotations: map[string]any{AnnotationSecrets: "1"},
			want:        answer{Ready: "READY_TRUE", Connection: complete, TTL: resultTTL, Composed: []string{"Secret team-b/db-secret-0"}},
		},
		"ComposedNowhere": {
			reason:      "A composite with neither namespace nor claim has no place for objects.",
			annotations: map[string]any{AnnotationSecrets: "1"},
			want:        answer{Ready: "READY_UNSPECIFIED", Fatal: "no namespace", TTL: resultTTL},
		},
		"TooMany": {
			reason:      "A typing error must not fill the hub.",
			namespace:   "team-a",
			annotations: map[string]any{AnnotationSecrets: "100000"},
			want:        answer{Ready: "READY_UNSPECIFIED", Fatal: "not between", TTL: resultTTL},
		},
		"Misspelt": {
			reason:      "A value that cannot be understood is not taken for the default.",
			annotations: map[string]any{AnnotationReadyAfter: "soon"},
			want:        answer{Ready: "READY_UNSPECIFIED", Fatal: AnnotationReadyAfter, TTL: resultTTL},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			composite := newComposite(created, tc.annotations)
			if tc.namespace != "" {
				composite["metadata"].(map[string]any)["namespace"] = tc.namespace
			}
			if tc.claimed {
				composite["spec"].(map[string]any)["claimRef"] = map[string]any{"namespace": "team-b", "name": "db"}
			}
			rsp := run(t, created.Add(tc.age), composite)
			if diff := cmp.Diff(tc.want, summarise(tc.want, rsp)); diff != "" {
				t.Errorf("%s\nRunFunction(): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRunFunctionIsStable(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	annotations := map[string]any{AnnotationSecrets: "1"}
	composite := func(version string) map[string]any {
		c := newComposite(created, annotations)
		c["metadata"].(map[string]any)["namespace"] = "team-a"
		c["spec"].(map[string]any)["version"] = version
		return c
	}
	first := run(t, created, composite("5.7"))
	again := run(t, created.Add(time.Hour), composite("5.7"))
	if !proto.Equal(first.GetDesired(), again.GetDesired()) {
		t.Errorf("the same composite must give the same answer, or Crossplane would write at every look:\n%v\n%v", first.GetDesired(), again.GetDesired())
	}
	rotated := run(t, created, composite("8.0"))
	if password(first) == "" || password(first) == password(rotated) {
		t.Errorf("a new version must give a new password: %q, %q", password(first), password(rotated))
	}
}

func TestOrdersOfTheCompositionAreThoseOfACompositeThatHasNone(t *testing.T) {
	input, err := structpb.NewStruct(map[string]any{"annotations": map[string]any{AnnotationSecrets: "1", AnnotationConfigMaps: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	composite := &unstructured.Unstructured{Object: newComposite(time.Now(), map[string]any{AnnotationConfigMaps: "2"})}
	got := readOrders(&fnv1.RunFunctionRequest{Input: input}, composite)
	if diff := cmp.Diff(map[string]string{AnnotationSecrets: "1", AnnotationConfigMaps: "2"}, got); diff != "" {
		t.Errorf("want the composite's own orders to go first (-want +got):\n%s", diff)
	}
	if got := readOrders(&fnv1.RunFunctionRequest{}, composite); len(got) != 1 {
		t.Errorf("want a step without input to say nothing, got %v", got)
	}
}

func newComposite(created time.Time, annotations map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "database.acmeco.org/v1alpha1", "kind": "CompositeMySQLInstance",
		"metadata": map[string]any{
			"name": "db", "uid": "8b4c", "creationTimestamp": created.Format(time.RFC3339), "annotations": annotations,
		},
		"spec": map[string]any{"version": "5.7"},
	}
}

func run(t *testing.T, now time.Time, composite map[string]any) *fnv1.RunFunctionResponse {
	t.Helper()
	resource, err := structpb.NewStruct(composite)
	if err != nil {
		t.Fatal(err)
	}
	req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: resource}}}
	rsp, err := New(testingclock.NewFakePassiveClock(now)).RunFunction(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return rsp
}

func password(rsp *fnv1.RunFunctionResponse) string {
	return string(rsp.GetDesired().GetComposite().GetConnectionDetails()["password"])
}

// summarise reduces a response to what the test checks. A fatal message only has to contain the wanted text.
func summarise(want answer, rsp *fnv1.RunFunctionResponse) answer {
	got := answer{
		Ready:      rsp.GetDesired().GetComposite().GetReady().String(),
		Connection: slices.Sorted(maps.Keys(rsp.GetDesired().GetComposite().GetConnectionDetails())),
		TTL:        rsp.GetMeta().GetTtl().AsDuration(),
	}
	for _, composed := range rsp.GetDesired().GetResources() {
		fields := composed.GetResource().GetFields()
		metadata := fields["metadata"].GetStructValue().GetFields()
		got.Composed = append(got.Composed, fields["kind"].GetStringValue()+" "+
			metadata["namespace"].GetStringValue()+"/"+metadata["name"].GetStringValue())
	}
	slices.Sort(got.Composed)
	for _, result := range rsp.GetResults() {
		if result.GetSeverity() != fnv1.Severity_SEVERITY_FATAL {
			continue
		}
		got.Fatal = result.GetMessage()
		if want.Fatal != "" && strings.Contains(got.Fatal, want.Fatal) {
			got.Fatal = want.Fatal
		}
	}
	return got
}
