// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package printed

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/masthead-dev/masthead/internal/test/testenv"
)

// gettingStarted is the page for newcomers.
const gettingStarted = "docs/getting-started.md"

// commandsAtMost is the maximum number of commands for a newcomer.
const commandsAtMost = 10

// TestGettingStartedIsShort counts the commands of the page.
func TestGettingStartedIsShort(t *testing.T) {
	count := 0
	for _, b := range blocks(t, gettingStarted) {
		count += len(b.steps)
	}
	if count == 0 || count > commandsAtMost {
		t.Errorf("%s has %d commands, want at most %d", gettingStarted, count, commandsAtMost)
	}
}

// TestGettingStartedAsPrinted follows the page on a hub that has nothing but the definitions of Crossplane, and on a
// workload cluster that has nothing. The test itself does what Crossplane does when it is offered a definition.
func TestGettingStartedAsPrinted(t *testing.T) {
	pages, m := open(t, gettingStarted), newMachine(t)
	m.start(t, "hub")
	m.start(t, "w1")
	definitions, err := testenv.CrossplaneCRDs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.must(t, "hub", "kubectl apply --server-side -f "+filepath.Join(definitions, "apiextensions.crossplane.io_compositeresourcedefinitions.yaml"))
	m.await(t, "hub", "kubectl get compositeresourcedefinitions 2>&1", "No resources found")

	m.follow(t, pages.section(t, gettingStarted, "Install Masthead")...)
	offer(t, m)
	// No controller manager aggregates roles here.
	m.must(t, "hub", "kubectl create clusterrolebinding claims --clusterrole=masthead-requirements-database.acmeco.org --serviceaccount=masthead-system:masthead")
	stop := m.launch(t)
	m.must(t, "w1", "kubectl config view --raw >shop.kubeconfig")
	m.follow(t, pages.section(t, gettingStarted, "Enrol the cluster")...)
	m.await(t, "w1", "kubectl get mysqlinstancerequirements 2>&1", "No resources found")
	m.follow(t, pages.section(t, gettingStarted, "Claim")...)
	stop()
	pages.done(t)
}

// offer does what Crossplane does with the sample definition: it creates the definition of the claim kind, and reports
// that.
func offer(t *testing.T, m *machine) {
	t.Helper()
	const name = "compositeresourcedefinition compositemysqlinstances.database.acmeco.org"
	uid := m.must(t, "hub", "kubectl get "+name+" -o jsonpath='{.metadata.uid}'")
	data, err := os.ReadFile(filepath.Join("testdata", "offered.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	made := strings.ReplaceAll(string(data), "UID-OF-THE-DEFINITION", uid)
	if err := os.WriteFile(filepath.Join(m.folder, "offered.yaml"), []byte(made), 0o600); err != nil {
		t.Fatal(err)
	}
	m.must(t, "hub", "kubectl apply --server-side -f offered.yaml")
	m.await(t, "hub", "kubectl get mysqlinstancerequirements 2>&1", "No resources found")
	m.must(t, "hub", "kubectl patch "+name+` --subresource=status --type=merge -p '{"status":{"conditions":[`+
		`{"type":"Established","status":"True","reason":"WatchingCompositeResource","lastTransitionTime":"2026-11-20T13:14:44Z"},`+
		`{"type":"Offered","status":"True","reason":"WatchingCompositeResourceClaim","lastTransitionTime":"2026-11-20T13:14:44Z"}]}}'`)
}
