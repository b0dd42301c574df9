// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package printed

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	readme        = "README.md"
	install       = "docs/install.md"
	rights        = "docs/rights.md"
	configuration = "docs/configuration.md"
	upgrade       = "docs/upgrade.md"
	leave         = "docs/leave.md"
)

// pagesRun returns the pages of which every console block is run.
func pagesRun() []string {
	return []string{readme, install, rights, configuration, upgrade, leave}
}

// notRun returns the commands of blocks that are not run here, with the reason.
func notRun() map[string]string {
	return map[string]string{
		"make demo":  "it starts a fleet of this machine's own; the end-to-end tests start the same",
		"make test":  "it is what runs this test",
		"make image": "the end-to-end tests make the image of a release, and run the manager out of it",
		"git clone":  "the reader has none of this repository yet",
	}
}

// book hands out the blocks of the pages, and records which were not requested.
type book struct {
	left map[string][]block
}

func open(t *testing.T, names ...string) *book {
	t.Helper()
	b := &book{left: map[string][]block{}}
	for _, page := range names {
		for _, block := range blocks(t, page) {
			known := slices.ContainsFunc(block.steps, func(s step) bool {
				words := strings.Fields(s.command)
				return len(words) > 1 && notRun()[words[0]+" "+words[1]] != ""
			})
			if !known {
				key := page + "#" + block.section
				b.left[key] = append(b.left[key], block)
			}
		}
	}
	return b
}

// done checks that no block is left.
func (b *book) done(t *testing.T) {
	t.Helper()
	for section, list := range b.left {
		for _, block := range list {
			t.Errorf("%s: no test runs this block of %s", block.place, section)
		}
	}
}

// section takes the blocks of a section.
func (b *book) section(t *testing.T, page, section string) []block {
	t.Helper()
	key := page + "#" + section
	list := b.left[key]
	if len(list) == 0 {
		t.Fatalf("%s has no section %q with a console block", page, section)
	}
	delete(b.left, key)
	return list
}

// TestPagesAsPrinted follows the pages on two API servers that have nothing. First, one of them is a hub that is
// installed with Helm. Then the other one is a hub that is installed with kubectl, and the first one is a workload
// cluster.
func TestPagesAsPrinted(t *testing.T) {
	pages, m := open(t, pagesRun()...), newMachine(t)
	m.install(t, map[string]string{"helm": "helm", "jq": "gojq"})
	m.start(t, "hub", "w1", "w2")
	withHelm(t, pages, m)

	m.start(t, "hub")
	withKubectl(t, pages, m)
	unenrol(t, pages, m)
	flags(t, pages, m)

	pages.done(t)
}

func withHelm(t *testing.T, pages *book, m *machine) {
	t.Helper()
	withCharts := pages.section(t, install, "With Helm")
	readmeHasTheSame(t, pages, withCharts[0])
	m.follow(t, withCharts...)
	m.follow(t, pages.section(t, upgrade, "Upgrade")...)
	m.must(t, "hub", "helm uninstall masthead --namespace masthead-system")
	m.must(t, "hub", "helm uninstall masthead-crds --namespace masthead-system")
	// API servers remove a definition after its objects.
	m.awaitRemoval(t, "hub", "kubectl get crds,clusterroles,clusterrolebindings,validatingadmissionpolicies -o name | grep masthead || echo nothing is left", "nothing is left")
}

// readmeHasTheSame checks that the README types what the page of the installation types first.
func readmeHasTheSame(t *testing.T, pages *book, installed block) {
	t.Helper()
	for _, b := range pages.section(t, readme, "With Helm") {
		for i, s := range b.steps {
			if s.command != installed.steps[i].command {
				t.Errorf("%s types %q, and %s %q", b.place, s.command, installed.place, installed.steps[i].command)
			}
		}
	}
}

func withKubectl(t *testing.T, pages *book, m *machine) {
	t.Helper()
	// The first block runs on a hub that has nothing. After the second, the Deployment has the arguments for a hub without
	// Cluster API.
	installed := pages.section(t, install, "With kubectl")
	if len(installed) != 3 {
		t.Fatalf("the section is expected to install, to install without Cluster API, and to ask the manager: it has %d blocks", len(installed))
	}
	m.follow(t, installed[:2]...)

	// The page shows what a manager that lacks one right reports.
	m.must(t, "hub", `kubectl get clusterrole masthead -o json >role.json`)
	m.must(t, "hub", `jq '(.rules[] | select(.resources == ["secrets"]) | .verbs) |= ["get", "watch"]' role.json | kubectl replace -f -`)
	stop := m.launch(t)
	m.await(t, "hub", "curl --silent http://"+m.health+"/readyz", "lacks")
	m.follow(t, installed[2])
	m.must(t, "hub", "kubectl apply --server-side --force-conflicts -k config/rbac")
	m.await(t, "hub", "curl --silent http://"+m.health+"/readyz", "ok")

	// A token with the least rights is created as the page says, and put into a Secret that the README enrols.
	m.must(t, "hub", "kubectl create namespace edge")
	m.follow(t, pages.section(t, rights, "What a workload cluster needs")...)
	if err := os.Rename(filepath.Join(m.folder, "masthead.kubeconfig"), filepath.Join(m.folder, "shop.kubeconfig")); err != nil {
		t.Fatal(err)
	}
	m.follow(t, pages.section(t, install, "Begin")...)
	m.follow(t, pages.section(t, readme, "Install it")...)
	pages.section(t, readme, "A session") // TestSessionIsOnTheWalk compares it with what is run.
	m.await(t, "hub", `kubectl get clusterprofile kubeconfig-shop -o jsonpath='{range .status.conditions[*]}{.type}={.status}{"\n"}{end}'`, "Connected=True")
	stop()
}

// unenrol creates a claim and its object in the hub, as they exist for a cluster that was not offboarded, and follows
// the page.
func unenrol(t *testing.T, pages *book, m *machine) {
	t.Helper()
	data, err := os.ReadFile("testdata/left.yaml")
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(data), "\n---\n")
	for name, part := range map[string]string{"definition": parts[0], "claim": parts[1], "hub": parts[2], "profile": parts[3]} {
		if err := os.WriteFile(filepath.Join(m.folder, name+".yaml"), []byte(part), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, where := range []string{"w1", "hub"} {
		m.must(t, where, "kubectl apply --server-side -f definition.yaml && "+
			// The wait fails if the definition has no status yet.
			"for i in 1 2 3 4 5; do kubectl wait --for=condition=Established -f definition.yaml && break; done")
	}
	m.must(t, "w1", "kubectl apply --server-side -f claim.yaml")
	m.must(t, "hub", "kubectl apply --server-side -f hub.yaml -f profile.yaml && kubectl apply --server-side --subresource=status -f profile.yaml")
	m.follow(t, pages.section(t, leave, "Un-enrol a cluster")...)
}

// flags makes the manager read the file and the flags that the page shows, and print its version instead of starting.
func flags(t *testing.T, pages *book, m *machine) {
	t.Helper()
	for _, b := range append(pages.section(t, configuration, "Configuration"), pages.section(t, configuration, "Networks to deny")...) {
		for _, s := range b.steps {
			if file, ok := strings.CutPrefix(s.command, "cat "); ok {
				if err := os.WriteFile(filepath.Join(m.folder, file), []byte(strings.Join(s.prints, "\n")), 0o600); err != nil {
					t.Fatal(err)
				}
				continue
			}
			m.must(t, "hub", s.command+" --version")
		}
	}
}
