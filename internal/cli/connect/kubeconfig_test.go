// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/crossplane"
	"github.com/masthead-dev/masthead/pkg/kindwatch"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

func publication(group, resource string) crossplane.Publication {
	return crossplane.Publication{Kind: kindwatch.Kind{GroupVersionKind: schema.GroupVersionKind{Group: group}, Resource: resource}}
}

func TestRights(t *testing.T) {
	kinds := []crossplane.Publication{publication("db.test.dev", "databases"), publication("web.test.dev", "sites"), publication("db.test.dev", "caches")}
	for name, tc := range map[string]struct {
		reason        string
		class         fleetv1alpha1.EnrollmentClassSpec
		have, haveNot []string
	}{
		"Everything": {
			reason: "A class that says nothing has claims and Applications.",
			have: []string{"ClusterRole masthead-workload", "ClusterRole masthead-workload-applications", "ClusterRole masthead-workload-components-common",
				"ClusterRole masthead-workload-requirements-db.test.dev", "ClusterRole masthead-workload-requirements-web.test.dev",
				"ClusterRoleBinding masthead-workload-requirements", "ClusterRoleBinding masthead-workload-components"},
		},
		"OneGroup": {
			reason:  "What the class does not offer needs no rights.",
			class:   fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{APIGroups: []string{"web.test.dev"}}},
			have:    []string{"ClusterRole masthead-workload-requirements-web.test.dev"},
			haveNot: []string{"ClusterRole masthead-workload-requirements-db.test.dev"},
		},
		"NoClaims": {
			reason:  "Without the agent there are no claims.",
			class:   fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{Mode: fleetv1alpha1.AgentModeDisabled}},
			have:    []string{"ClusterRole masthead-workload-applications"},
			haveNot: []string{"ClusterRole masthead-workload-requirements", "ClusterRoleBinding masthead-workload-requirements", "ClusterRole masthead-workload-requirements-db.test.dev"},
		},
		"NoApplications": {
			reason:  "Without Applications nothing of components is read.",
			class:   fleetv1alpha1.EnrollmentClassSpec{Applications: fleetv1alpha1.ApplicationsSpec{Mode: fleetv1alpha1.ApplicationsModeDisabled}},
			have:    []string{"ClusterRole masthead-workload-requirements"},
			haveNot: []string{"ClusterRole masthead-workload-applications", "ClusterRole masthead-workload-components-common", "ClusterRoleBinding masthead-workload-components"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			rights, err := Rights(&fleetv1alpha1.EnrollmentClass{Spec: tc.class}, kinds)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, u := range rights {
				got = append(got, u.GetKind()+" "+u.GetName())
			}
			if len(got) < 2 || got[0] != "Namespace masthead-system" || got[1] != "ServiceAccount masthead" {
				t.Errorf("what others are in comes first, got %v", got)
			}
			for _, want := range tc.have {
				if !slices.Contains(got, want) {
					t.Errorf("%s Want %s in %v", tc.reason, want, got)
				}
			}
			for _, not := range tc.haveNot {
				if slices.Contains(got, not) {
					t.Errorf("%s Want no %s", tc.reason, not)
				}
			}
		})
	}
}

func TestClaimRights(t *testing.T) {
	roles, err := claimRights(nil, []crossplane.Publication{publication("db.test.dev", "databases"), publication("db.test.dev", "caches"), publication("db.test.dev", "caches")})
	if err != nil || len(roles) != 1 {
		t.Fatalf("want one role for a group, got %d %v", len(roles), err)
	}
	got, err := json.Marshal(roles[0].Object)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"labels":{"app.kubernetes.io/name":"masthead",` +
		`"rbac.masthead.dev/aggregate-to-workload-requirements":"true"},"name":"masthead-workload-requirements-db.test.dev"},` +
		`"rules":[{"apiGroups":["db.test.dev"],"resources":["caches","databases"],"verbs":["get","list","watch","patch"]},` +
		`{"apiGroups":["db.test.dev"],"resources":["caches/status","databases/status"],"verbs":["patch"]}]}`
	if string(got) != want {
		t.Errorf("want %s\ngot  %s", want, got)
	}
}

func TestKubeconfig(t *testing.T) {
	for name, tc := range map[string]struct {
		reason  string
		target  Target
		allow   credentials.Options
		refused string
	}{
		"Plain":    {reason: "An address is enough.", target: Target{Server: "https://shop.test.dev:6443"}},
		"Loopback": {reason: "The hub does not reach this machine.", target: Target{Server: "https://127.0.0.1:6443"}, refused: "loopback"},
		"Allowed":  {reason: "On a developer's machine it does.", target: Target{Server: "https://127.0.0.1:6443"}, allow: credentials.Options{AllowLoopback: true}},
		"Insecure": {reason: "The manager verifies who answers.", target: Target{Server: "https://shop.test.dev", Insecure: true}, refused: "insecure-skip-tls-verify"},
		"Proxy":    {reason: "The manager uses no proxy of others.", target: Target{Server: "https://shop.test.dev", ProxyURL: "http://p.test.dev:3128"}, refused: "proxy-url"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := Kubeconfig(tc.target, "hunter2", tc.allow)
			switch {
			case tc.refused == "" && err != nil:
				t.Errorf("%s got %v", tc.reason, err)
			case tc.refused == "" && !strings.Contains(string(data), "token: hunter2"):
				t.Errorf("%s want the token, got %s", tc.reason, data)
			case tc.refused != "" && (err == nil || !strings.Contains(err.Error(), tc.refused) || strings.Contains(err.Error(), "hunter2")):
				t.Errorf("%s want an error with %q and no token, got %v", tc.reason, tc.refused, err)
			}
		})
	}
}
