// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
)

func TestTargetNamespace(t *testing.T) {
	some := &fleetv1alpha1.AllowedNamespaces{List: []string{"some"}}
	listed := fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar", AllowedTargetNamespaces: some}
	matched := fleetv1alpha1.AgentSpec{MatchNamespaces: true, AllowedTargetNamespaces: some}
	for name, tc := range map[string]struct {
		reason     string
		agent      fleetv1alpha1.AgentSpec
		namespace  string
		annotated  *string
		allowed    []string
		want       string
		wantReason string
	}{
		"Default": {reason: "All claims go to the default target namespace.", agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar"}, namespace: "foo", want: "bar"},
		"Match":   {reason: "Or each to the namespace of its own name.", agent: fleetv1alpha1.AgentSpec{MatchNamespaces: true}, namespace: "foo", want: "foo"},
		"Neither": {reason: "A class that says nothing is invalid.", namespace: "foo", wantReason: fleetv1alpha1.ReasonInvalidClass},
		"Both": {
			reason: "One that says both is, too.", agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar", MatchNamespaces: true},
			namespace: "foo", wantReason: fleetv1alpha1.ReasonInvalidClass,
		},
		"MatchSystem": {
			reason: "The owner of a workload cluster does not get into the hub's control plane by the name of a namespace.",
			agent:  fleetv1alpha1.AgentSpec{MatchNamespaces: true}, namespace: "kube-system", wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"MatchProtected": {
			reason: "Nor into that of Crossplane.", agent: fleetv1alpha1.AgentSpec{MatchNamespaces: true},
			namespace: "crossplane-system", wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"MatchProviders": {
			reason: "Nor into that of anything else that runs the hub.", agent: fleetv1alpha1.AgentSpec{MatchNamespaces: true},
			namespace: "capi-kubeadm-bootstrap-system", wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"MatchCertificates": {
			reason: "Whatever it is called.", agent: fleetv1alpha1.AgentSpec{MatchNamespaces: true},
			namespace: "cert-manager", wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"DefaultSystem": {
			reason: "Not even if the class says so.", agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "kube-public"},
			namespace: "foo", wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"FromSystemToDefault": {
			reason: "Where a claim comes from does not matter if it does not decide where it goes.",
			agent:  fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar"}, namespace: "kube-system", want: "bar",
		},
		"Annotated": {
			reason: "The annotation wins over the default, where the class allows it.",
			agent:  listed, namespace: "foo", annotated: new("other"), allowed: []string{"other"}, want: "other",
		},
		"AnnotatedMatch": {
			reason: "And over the namespace's own name.", agent: matched, namespace: "foo",
			annotated: new("other"), allowed: []string{"other"}, want: "other",
		},
		"AnnotatedDefault": {
			reason: "What the class names itself is allowed.", agent: listed, namespace: "foo", annotated: new("bar"), want: "bar",
		},
		"AnnotatedNotAllowed": {
			reason: "The owner of a workload cluster does not get where the class does not allow.",
			agent:  listed, namespace: "foo", annotated: new("secret"), allowed: []string{"other"}, wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"AnnotatedNothingAllowed": {
			reason: "A class that allows nothing to be chosen leads to one namespace.",
			agent:  fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar"}, namespace: "foo", annotated: new("other"),
			allowed: []string{"other"}, wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"AnnotatedOwnName": {
			reason: "With matchNamespaces the own name is where the claim would go anyway.",
			agent:  fleetv1alpha1.AgentSpec{MatchNamespaces: true}, namespace: "foo", annotated: new("foo"), want: "foo",
		},
		"AnnotatedOtherName": {
			reason: "Another one is not.", agent: fleetv1alpha1.AgentSpec{MatchNamespaces: true}, namespace: "foo",
			annotated: new("other"), wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"MatchAllowed": {
			reason: "With matchNamespaces a list limits which names match.", agent: matched, namespace: "foo", allowed: []string{"foo"}, want: "foo",
		},
		"MatchNotAllowed": {
			reason: "Whoever can create a namespace chooses its name.", agent: matched, namespace: "secret", allowed: []string{"foo"},
			wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"AnnotatedControlPlane": {
			reason: "A class that allows every namespace does not allow those of the control plane.",
			agent:  listed, namespace: "foo", annotated: new("kube-system"), allowed: []string{"kube-system"}, wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"AnnotatedProtected": {
			reason: "Nor those that are protected.", agent: listed, namespace: "foo", annotated: new("crossplane-system"),
			allowed: []string{"crossplane-system"}, wantReason: fleetv1alpha1.ReasonTargetNamespaceNotAllowed,
		},
		"AnnotatedEmpty": {
			reason: "An empty value is a mistake, not the default: a template that did not fill it in must not send claims elsewhere.",
			agent:  listed, namespace: "foo", annotated: new(""), wantReason: fleetv1alpha1.ReasonTargetNamespaceInvalid,
		},
		"AnnotatedPath": {
			reason: "What cannot be a namespace never becomes a part of a path.",
			agent:  listed, namespace: "foo", annotated: new("../default"), wantReason: fleetv1alpha1.ReasonTargetNamespaceInvalid,
		},
		"AnnotatedInInvalidClass": {
			reason: "An annotation does not mend a class.", namespace: "foo", annotated: new("other"), wantReason: fleetv1alpha1.ReasonInvalidClass,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pairing := Pairing{
				Agent: tc.agent, Namespace: tc.namespace, Protected: []string{"crossplane-system"},
				Allowed: func(target string) bool { return slices.Contains(tc.allowed, target) },
			}
			if tc.annotated != nil {
				pairing.Annotations = map[string]string{fleetv1alpha1.TargetNamespaceAnnotation: *tc.annotated}
			}
			got, p := pairing.Target()
			gotReason := ""
			if p != nil {
				gotReason = p.Reason
			}
			if got != tc.want || gotReason != tc.wantReason {
				t.Errorf("%s want %q %q, got %q %q", tc.reason, tc.want, tc.wantReason, got, gotReason)
			}
		})
	}
}

// TestWithdrawn has every way for an administrator to withdraw a namespace of the hub.
func TestWithdrawn(t *testing.T) {
	some := &fleetv1alpha1.AllowedNamespaces{List: []string{"some"}}
	for name, tc := range map[string]struct {
		reason    string
		agent     fleetv1alpha1.AgentSpec
		namespace string
		want      bool
	}{
		"NothingListed": {
			reason: "A class that lists no namespaces has a new default, and has taken nothing away.",
			agent:  fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "new"}, namespace: "old",
		},
		"Listed":    {reason: "What is listed is allowed.", agent: fleetv1alpha1.AgentSpec{AllowedTargetNamespaces: some}, namespace: "some"},
		"NotListed": {reason: "What is not is withdrawn.", agent: fleetv1alpha1.AgentSpec{AllowedTargetNamespaces: some}, namespace: "old", want: true},
		"Default": {
			reason: "The class names its default, listed or not.",
			agent:  fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "old", AllowedTargetNamespaces: some}, namespace: "old",
		},
		"Protected": {reason: "Nobody reads in a namespace that is reserved since.", namespace: "crossplane-system", want: true},
		"ControlPlane": {
			reason:    "Nor in one of the control plane, whatever is listed.",
			agent:     fleetv1alpha1.AgentSpec{AllowedTargetNamespaces: &fleetv1alpha1.AllowedNamespaces{List: []string{"kube-system"}}},
			namespace: "kube-system", want: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pairing := Pairing{
				Agent: tc.agent, Protected: []string{"crossplane-system"}, Allowed: func(target string) bool {
					return slices.Contains(tc.agent.AllowedTargetNamespaces.List, target)
				},
			}
			if got := pairing.withdrawn(tc.namespace); got != tc.want {
				t.Errorf("%s\nwant %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

func TestLeads(t *testing.T) {
	some := &fleetv1alpha1.AllowedNamespaces{List: []string{"other"}}
	for name, tc := range map[string]struct {
		reason      string
		agent       fleetv1alpha1.AgentSpec
		annotations map[string]string
		target      string
		want        bool
	}{
		"Default":    {reason: "The class says so.", agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar"}, target: "bar", want: true},
		"Matching":   {reason: "So it does.", agent: fleetv1alpha1.AgentSpec{MatchNamespaces: true}, target: "foo", want: true},
		"Attacker":   {reason: "It does not lead there.", agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar"}, target: "attacker"},
		"Allowed":    {reason: "Another namespace of the cluster may be paired with it.", agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar", AllowedTargetNamespaces: some}, target: "other", want: true},
		"NotAllowed": {reason: "None may.", agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar", AllowedTargetNamespaces: some}, target: "attacker"},
		"Identity": {
			reason: "Its rights may reach where any user can name the cluster.", target: "other",
			agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar", Identity: &fleetv1alpha1.HubIdentity{CredentialsSecretName: "c"}},
		},
		"OwnTarget": {
			reason: "The namespace's claims go there.", agent: fleetv1alpha1.AgentSpec{DefaultTargetNamespace: "bar"}, target: "mine", want: true,
			annotations: map[string]string{fleetv1alpha1.TargetNamespaceAnnotation: "mine", fleetv1alpha1.CredentialsSecretNameAnnotation: "c"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &Pairing{Agent: tc.agent, Namespace: "foo", Annotations: tc.annotations, Allowed: func(target string) bool { return target == "other" }}
			if got := p.Leads("foo", tc.target); got != tc.want {
				t.Errorf("%s got %t", tc.reason, got)
			}
		})
	}
}
