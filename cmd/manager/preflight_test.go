// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/masthead-dev/masthead/internal/processmetrics"
	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// fakeHub lacks what a test specifies.
type fakeHub struct {
	lacksKind  map[string]bool
	lacksRight map[string]bool
	err        error
}

func (f fakeHub) Serves(_ context.Context, r schema.GroupVersionResource) (bool, error) {
	return !f.lacksKind[r.Resource], f.err
}

func (f fakeHub) May(_ context.Context, r right, verb string) (bool, error) {
	return !f.lacksRight[verb+" "+r.resource], nil
}

func TestLacking(t *testing.T) {
	cases := map[string]struct {
		reason  string
		hub     fakeHub
		sources []string
		want    string
		wantErr bool
	}{
		"Nothing": {
			reason: "A hub that has everything is not complained about.",
		},
		"OneCRD": {
			reason: "A missing CRD is named with the command that installs it.",
			hub:    fakeHub{lacksKind: map[string]bool{"enrollmentclasses": true}},
			want: "the hub lacks what Masthead needs, and Masthead waits for it; " +
				"install the CRD enrollmentclasses.fleet.masthead.dev in version v1alpha1 with: " + installOurCRDs,
		},
		"SeveralRights": {
			reason: "All that one command installs is named before it, with all verbs of a resource together.",
			hub: fakeHub{lacksRight: map[string]bool{
				"list clusters": true, "watch clusters": true, "patch clusterprofiles/status": true, "get namespaces": true,
				"create leases": true,
			}},
			want: "the hub lacks what Masthead needs, and Masthead waits for it; install " +
				`the right to get namespaces "kube-system" and ` +
				"the right to patch the status of clusterprofiles.multicluster.x-k8s.io and " +
				`the right to create leases.coordination.k8s.io in namespace "masthead-system" and ` +
				"the right to list, watch clusters.cluster.x-k8s.io with: " + installRights,
		},
		"CRDAndRight": {
			reason: "Everything that is missing is in one message.",
			hub: fakeHub{
				lacksKind: map[string]bool{"clusters": true}, lacksRight: map[string]bool{"list secrets": true},
			},
			want: "the hub lacks what Masthead needs, and Masthead waits for it; " +
				"install the CRD clusters.cluster.x-k8s.io in version v1beta2 with: " + installClusterAPI +
				"; install the right to list secrets with: " + installRights,
		},
		"SecretsOnly": {
			reason:  "A manager whose clusters come from Secrets needs no Cluster API.",
			sources: []string{"kubeconfig"},
			hub:     fakeHub{lacksKind: map[string]bool{"clusters": true}, lacksRight: map[string]bool{"list clusters": true}},
		},
		"SecretsOfSomeNamespacesOnly": {
			reason: "Roles in the namespaces that matter are a choice: the manager does not wait for the right to read all Secrets.",
			hub:    fakeHub{lacksRight: map[string]bool{"get secrets": true}},
		},
		"NoAnswer": {
			reason:  "A hub that does not answer lacks nothing that is known.",
			hub:     fakeHub{err: errors.New("connection refused")},
			wantErr: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			options := defaultOptions(noEnv)
			if tc.sources != nil {
				options.Sources = tc.sources
			}
			lacks, err := lacking(t.Context(), tc.hub, requiredKinds(options), requiredRights(options))
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s\nwant an error: %v, got %v", tc.reason, tc.wantErr, err)
			}
			got := ""
			if required, _ := split(lacks); len(required) > 0 {
				got = explain(required)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPreflightGoesOnWithoutWhatIsOptional has a hub that grants the right to get Secrets in some namespaces only.
func TestPreflightGoesOnWithoutWhatIsOptional(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	hub := fakeHub{lacksRight: map[string]bool{"get secrets": true}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := preflight(ctx, hub, defaultOptions(noEnv), newHealth(processmetrics.NewReady(nil)), log); err != nil {
		t.Fatalf("it waits for what it can do without: %v", err)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "Continuing without the right to get secrets") {
		t.Errorf("want one line that says what is missing, got %q", lines)
	}
}

// slowHub answers each question after most of the time that one may take.
type slowHub struct{ fakeHub }

func (h slowHub) May(ctx context.Context, r right, verb string) (bool, error) {
	select {
	case <-time.After(preflightTimeout - time.Second):
		return h.fakeHub.May(ctx, r, verb)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func TestPreflightEndsBesideASlowHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		if err := preflight(ctx, slowHub{}, defaultOptions(noEnv), newHealth(processmetrics.NewReady(nil)), logr.Discard()); err != nil {
			t.Errorf("it begins again and again: %v", err)
		}
	})
}

// TestRightsAreThoseOfTheManifests compares the rights that the preflight checks with those that config/rbac grants.
// Nothing needs a right that is granted and not checked; a right that is checked and not granted keeps the manager
// waiting.
func TestRightsAreThoseOfTheManifests(t *testing.T) {
	var want []string
	for _, r := range requiredRights(defaultOptions(noEnv)) {
		want = append(want, grants(r.namespace, rbacv1.PolicyRule{
			APIGroups: []string{r.group}, Resources: []string{r.resource}, ResourceNames: nonEmpty(r.name), Verbs: r.verbs,
		})...)
	}
	var got []string
	for _, file := range []string{"role.yaml", "role-leader-election.yaml"} {
		data, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		var role rbacv1.Role // A ClusterRole without a namespace has the same rules.
		if err := yaml.Unmarshal(data, &role); err != nil {
			t.Fatal(err)
		}
		for _, rule := range role.Rules {
			got = append(got, grants(role.Namespace, rule)...)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-listed in requirements.go, +granted in config/rbac:\n%s", diff)
	}
}

func grants(namespace string, rule rbacv1.PolicyRule) []string {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{"any"}
	}
	var list []string
	for _, g := range rule.APIGroups {
		for _, r := range rule.Resources {
			for _, n := range names {
				for _, v := range rule.Verbs {
					list = append(list, fmt.Sprintf("%s %q %s %s in %q", v, g, r, n, namespace))
				}
			}
		}
	}
	return list
}

func nonEmpty(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// TestManifestsHaveNoWildcards reads every manifest with rules.
func TestManifestsHaveNoWildcards(t *testing.T) {
	for _, pattern := range []string{
		"config/rbac/*.yaml", "config/imports/*/role.yaml", "config/workload/*.yaml", "config/samples/*/*rights.yaml",
	} {
		files, err := filepath.Glob(filepath.Join(testenv.Root(), pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s: %v", pattern, err)
		}
		for _, file := range files {
			for _, role := range roles(t, file) {
				for _, rule := range role.Rules {
					for _, list := range [][]string{rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs} {
						if slices.Contains(list, "*") {
							t.Errorf("%s: role %q has a wildcard: %v", file, role.Name, rule)
						}
					}
				}
			}
		}
	}
}
