// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

var hub client.Client

func TestMain(m *testing.M) {
	os.Exit(testenv.Run(m, fleetv1alpha1.AddToScheme, func(c client.Client) { hub = c }, testenv.CRDs()))
}

func TestEnrollmentClassValidation(t *testing.T) {
	tooMany := make([]any, 65)
	for i := range tooMany {
		tooMany[i] = fmt.Sprintf("g%d.acmeco.org", i)
	}
	exactlyOne := "exactly one of defaultTargetNamespace and matchNamespaces: true is required when mode is ReadWrite"

	cases := map[string]struct {
		reason string
		name   string
		spec   map[string]any
		want   string // A part of the API server's message; empty if the object is valid.
	}{
		"DefaultTargetNamespace": {
			reason: "A class that sends every claim to one namespace is valid.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar"}),
		},
		"MatchNamespaces": {
			reason: "A class that matches namespaces is valid.",
			spec:   agent(map[string]any{"mode": "ReadWrite", "matchNamespaces": true}),
		},
		"Limits": {
			reason: "A class can limit what its clusters leave in the hub.",
			spec: agent(map[string]any{
				"defaultTargetNamespace": "bar", "maxClaims": int64(10), "maxClaimsPerNamespace": int64(1), "orphanPolicy": "Forbidden",
			}),
		},
		"NoClaims": {
			reason: "A class without claims is Disabled.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "maxClaims": int64(0)}),
			want:   "should be greater than or equal to 1",
		},
		"UnknownOrphanPolicy": {
			reason: "There are two policies.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "orphanPolicy": "Never"}),
			want:   "Unsupported value",
		},
		"ExplicitlyNotMatching": {
			reason: "matchNamespaces: false beside a default target namespace is what the default says too.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "matchNamespaces": false}),
		},
		"Neither": {
			reason: "Without a rule for namespaces a claim has nowhere to go.",
			spec:   agent(map[string]any{}),
			want:   exactlyOne,
		},
		"Both": {
			reason: "Two rules for namespaces contradict each other.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "matchNamespaces": true}),
			want:   exactlyOne,
		},
		"DisabledNeedsNothing": {
			reason: "A class that does nothing needs no namespace.",
			spec:   agent(map[string]any{"mode": "Disabled"}),
		},
		"DisabledKeepsItsSettings": {
			reason: "Disabling a class must not require deleting its settings.",
			spec:   agent(map[string]any{"mode": "Disabled", "defaultTargetNamespace": "bar"}),
		},
		"Orphan": {
			reason: "A class may keep what its claims made.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "deletionPolicy": "Orphan"}),
		},
		"DeletionPolicyThatMeansNothing": {
			reason: "Nothing may be deleted on a guess.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "deletionPolicy": "Retain"}),
			want:   `Unsupported value: "Retain"`,
		},
		"NoAgent": {
			reason: "A class without an agent says nothing.",
			spec:   map[string]any{},
			want:   "spec.agent: Required value",
		},
		"ModeThatIsNotBuilt": {
			reason: "A mode whose behaviour is not built must not be accepted and ignored.",
			spec:   agent(map[string]any{"mode": "ReadOnly", "defaultTargetNamespace": "bar"}),
			want:   `Unsupported value: "ReadOnly"`,
		},
		"DefinitionsOnly": {
			reason: "A platform team can keep its Compositions in the hub.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "discovery": "DefinitionsOnly"}),
		},
		"ApplicationsDisabled": {
			reason: "A cluster can do without Applications.",
			spec:   withApplications(map[string]any{"mode": "Disabled"}),
		},
		"ApplicationsUnknown": {
			reason: "A mode that means nothing must not be taken for one that does.",
			spec:   withApplications(map[string]any{"mode": "ReadOnly"}),
			want:   `spec.applications.mode: Unsupported value: "ReadOnly"`,
		},
		"ApplicationsMisspelt": {
			reason: "What is misspelt is not ignored.",
			spec:   withApplications(map[string]any{"modus": "Disabled"}),
			want:   "unknown field",
		},
		"DiscoveryUnknown": {
			reason: "What is not known would show everything.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "discovery": "Nothing"}),
			want:   `Unsupported value: "Nothing"`,
		},
		"NamespaceUpperCase": {
			reason: "A namespace that cannot exist is rejected when it is written, not when it is used.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "Bar"}),
			want:   "a namespace is a DNS label",
		},
		"NamespaceTrailingNewline": {
			reason: "A pattern that is anchored by lines would let this pass.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar\n"}),
			want:   "a namespace is a DNS label",
		},
		"NamespaceWithDots": {
			reason: "Namespaces are labels, not subdomains.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "a.b"}),
			want:   "a namespace is a DNS label",
		},
		"NamespaceTooLong": {
			reason: "A DNS label has at most 63 characters.",
			spec:   agent(map[string]any{"defaultTargetNamespace": strings.Repeat("a", 64)}),
			want:   "may not be more than 63",
		},
		"NamespaceEmpty": {
			reason: "An empty namespace is not the same as none.",
			spec:   agent(map[string]any{"defaultTargetNamespace": ""}),
			want:   "should be at least 1 chars long",
		},
		"APIGroups": {
			reason: "API groups are subdomains; a single label is one.",
			spec: agent(map[string]any{
				"defaultTargetNamespace": "bar", "apiGroups": []any{"database.acmeco.org", "apps"},
			}),
		},
		"APIGroupTwice": {
			reason: "The groups are a set.",
			spec: agent(map[string]any{
				"defaultTargetNamespace": "bar", "apiGroups": []any{"a.acmeco.org", "a.acmeco.org"},
			}),
			want: "Duplicate value",
		},
		"APIGroupWildcard": {
			reason: "A wildcard is not a group, and looks as if it did something.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "apiGroups": []any{"*.acmeco.org"}}),
			want:   "an API group is a DNS subdomain",
		},
		"APIGroupEmpty": {
			reason: "The core group has no claims.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "apiGroups": []any{""}}),
			want:   "should be at least 1 chars long",
		},
		"APIGroupWithVersion": {
			reason: "A group is not a group and version.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "apiGroups": []any{"a.acmeco.org/v1"}}),
			want:   "an API group is a DNS subdomain",
		},
		"TooManyAPIGroups": {
			reason: "The list is bounded, so that the API server can check it.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "apiGroups": tooMany}),
			want:   "must have at most 64 items",
		},
		"EveryNamespaceAllowed": {
			reason: "An empty object allows every namespace.",
			spec:   allowing(map[string]any{}),
		},
		"NamespacesAllowed": {
			reason: "A list and a selector go together.",
			spec: allowing(map[string]any{
				"list": []any{"default", "team-a"}, "selector": map[string]any{"matchLabels": map[string]any{"fleet": "yes"}},
			}),
		},
		"NamespacesByExpression": {
			reason: "A selector may be expressions only.",
			spec: allowing(map[string]any{"selector": map[string]any{
				"matchExpressions": []any{map[string]any{"key": "fleet", "operator": "Exists"}},
			}}),
		},
		"TargetNamespacesAllowed": {
			reason: "The namespaces that a cluster may choose have the same shape.",
			spec: agent(map[string]any{"defaultTargetNamespace": "bar", "allowedTargetNamespaces": map[string]any{
				"list": []any{"team-a"}, "selector": map[string]any{"matchLabels": map[string]any{"claims": "yes"}},
			}}),
		},
		"EveryTargetNamespaceAllowed": {
			reason: "And the same meaning.",
			spec:   agent(map[string]any{"matchNamespaces": true, "allowedTargetNamespaces": map[string]any{}}),
		},
		"EmptyListOfTargets": {
			reason: "A list that came out empty must not mean every namespace.",
			spec: agent(map[string]any{
				"defaultTargetNamespace": "bar", "allowedTargetNamespaces": map[string]any{"list": []any{}},
			}),
			want: "should have at least 1 items",
		},
		"TargetThatCannotExist": {
			reason: "A namespace that cannot exist is rejected when it is written.",
			spec: agent(map[string]any{
				"defaultTargetNamespace": "bar", "allowedTargetNamespaces": map[string]any{"list": []any{"a.b"}},
			}),
			want: "a namespace is a DNS label",
		},
		"ExcludedMetadata": {
			reason: "What does not travel is named by key or by domain.",
			spec: agent(map[string]any{"defaultTargetNamespace": "bar", "excludedMetadata": []any{
				"release", "deploy.acmeco.org/release", "deploy.acmeco.org/*", "acmeco.org/A_b.c",
			}}),
		},
		"ExcludedMetadataEverything": {
			reason: "A wildcard alone would keep back what users write.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "excludedMetadata": []any{"*"}}),
			want:   "an entry is the key of a label or annotation",
		},
		"ExcludedMetadataWildcardInKey": {
			reason: "A wildcard stands for a whole name.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "excludedMetadata": []any{"deploy.acmeco.org/rel*"}}),
			want:   "an entry is the key of a label or annotation",
		},
		"ExcludedMetadataWildcardDomain": {
			reason: "A domain covers its subdomains already.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "excludedMetadata": []any{"*.acmeco.org/*"}}),
			want:   "an entry is the key of a label or annotation",
		},
		"ImpersonatedServiceAccount": {
			reason: "A class may say as whom Masthead acts.",
			spec: agent(map[string]any{"defaultTargetNamespace": "bar", "identity": map[string]any{
				"serviceAccountRef": map[string]any{"namespace": "bar", "name": "agent1"},
			}}),
		},
		"CredentialsSecret": {
			reason: "Or where credentials are.",
			spec: agent(map[string]any{
				"defaultTargetNamespace": "bar", "identity": map[string]any{"credentialsSecretName": "agent1-creds"},
			}),
		},
		"TwoIdentities": {
			reason: "It is not clear who is meant.",
			spec: agent(map[string]any{"defaultTargetNamespace": "bar", "identity": map[string]any{
				"serviceAccountRef": map[string]any{"namespace": "bar", "name": "agent1"}, "credentialsSecretName": "agent1-creds",
			}}),
			want: "exactly one of serviceAccountRef and credentialsSecretName is required",
		},
		"NoIdentity": {
			reason: "An empty identity does not stand for the manager's own.",
			spec:   agent(map[string]any{"defaultTargetNamespace": "bar", "identity": map[string]any{}}),
			want:   "exactly one of serviceAccountRef and credentialsSecretName is required",
		},
		"ServiceAccountThatIsAUser": {
			reason: "What is impersonated is a ServiceAccount and nothing else.",
			spec: agent(map[string]any{"defaultTargetNamespace": "bar", "identity": map[string]any{
				"serviceAccountRef": map[string]any{"namespace": "bar", "name": "x:system:admin"},
			}}),
			want: "the name of a ServiceAccount is a DNS subdomain",
		},
		"SecretInAnotherNamespace": {
			reason: "A name does not lead to another namespace.",
			spec: agent(map[string]any{
				"defaultTargetNamespace": "bar", "identity": map[string]any{"credentialsSecretName": "../kube-system/x"},
			}),
			want: "the name of a Secret is a DNS subdomain",
		},
		"EmptyList": {
			reason: "A list that came out empty must not mean every namespace.",
			spec:   allowing(map[string]any{"list": []any{}}),
			want:   "should have at least 1 items",
		},
		"EmptySelector": {
			reason: "Some readers would take it for every namespace, and others for none.",
			spec:   allowing(map[string]any{"selector": map[string]any{}}),
			want:   "a selector must select something",
		},
		"EmptyLabels": {
			reason: "As above.",
			spec:   allowing(map[string]any{"selector": map[string]any{"matchLabels": map[string]any{}, "matchExpressions": []any{}}}),
			want:   "a selector must select something",
		},
		"AllowedWildcard": {
			reason: "A wildcard is not a namespace, and looks as if it did something.",
			spec:   allowing(map[string]any{"list": []any{"*"}}),
			want:   "a namespace is a DNS label",
		},
		"NameTrue": {
			reason: `The label's value "true" means the class "default".`,
			name:   "true",
			spec:   agent(map[string]any{"mode": "Disabled"}),
			want:   "cannot be named",
		},
		"NameFalse": {
			reason: `The label's value "false" means not enrolled.`,
			name:   "false",
			spec:   agent(map[string]any{"mode": "Disabled"}),
			want:   "cannot be named",
		},
		"NameTooLong": {
			reason: "A class that no label can name cannot be used.",
			name:   strings.Repeat("a", 64),
			spec:   agent(map[string]any{"mode": "Disabled"}),
			want:   "at most 63 characters",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.name == "" {
				tc.name = "c-" + strings.ToLower(name)
			}
			u := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": fleetv1alpha1.GroupVersion.String(),
				"kind":       "EnrollmentClass",
				"metadata":   map[string]any{"name": tc.name},
				"spec":       tc.spec,
			}}
			err := hub.Create(t.Context(), u, client.FieldValidation(metav1.FieldValidationStrict))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s\nCreate: unexpected error: %v", tc.reason, err)
			case tc.want != "" && err == nil:
				t.Errorf("%s\nCreate: want an error with %q, got none", tc.reason, tc.want)
			case tc.want != "" && !strings.Contains(err.Error(), tc.want):
				t.Errorf("%s\nCreate: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

func TestEnrollmentClassDefaults(t *testing.T) {
	class := &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
		Spec:       fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar"}},
	}
	if err := hub.Create(t.Context(), class); err != nil {
		t.Fatalf("Create: %v", err)
	}
	want := fleetv1alpha1.AgentSpec{
		Mode: fleetv1alpha1.AgentModeReadWrite, Discovery: fleetv1alpha1.DiscoveryModeFull, DefaultTargetNamespace: "bar",
		DeletionPolicy: fleetv1alpha1.DeletionPolicyDelete, OrphanPolicy: fleetv1alpha1.OrphanPolicyAllowed, RecreatePolicy: fleetv1alpha1.RecreatePolicyNever,
	}
	if diff := cmp.Diff(want, class.Spec.Agent); diff != "" {
		t.Errorf("An agent without a mode reads, writes, deletes and shows everything, and replaces nothing unasked: -want, +got:\n%s", diff)
	}
	if got := class.Spec.Applications.Mode; got != fleetv1alpha1.ApplicationsModeEnabled {
		t.Errorf("A class that says nothing about Applications has them, got %q", got)
	}
}

func TestSampleIsValid(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "samples", "hub", "enrollmentclass.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(data, &u.Object); err != nil {
		t.Fatal(err)
	}
	if err := hub.Create(t.Context(), u, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Errorf("What people copy must work: %v", err)
	}
}

func allowing(namespaces map[string]any) map[string]any {
	spec := agent(map[string]any{"mode": "Disabled"})
	spec["allowedNamespaces"] = namespaces
	return spec
}

func withApplications(applications map[string]any) map[string]any {
	spec := agent(map[string]any{"defaultTargetNamespace": "bar"})
	spec["applications"] = applications
	return spec
}

func agent(spec map[string]any) map[string]any {
	return map[string]any{"agent": spec}
}
