// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestSiteMapHasEveryPage compares the navigation of the site, and the list of pages, with the files.
func TestSiteMapHasEveryPage(t *testing.T) {
	var site struct {
		Nav []map[string][]string `json:"nav"`
	}
	if err := yaml.Unmarshal([]byte(files(t, "mkdocs.yml")["mkdocs.yml"]), &site); err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, section := range site.Nav {
		for _, pages := range section {
			for _, page := range pages {
				count["docs/"+page]++
			}
		}
	}
	pages := files(t, ".md")
	listed := matches(map[string]string{"": pages["docs/README.md"]}, `\]\(([^)#]+)\)`)
	for page := range pages {
		name, ok := strings.CutPrefix(page, "docs/")
		if !ok {
			continue
		}
		if count[page] != 1 {
			t.Errorf("%s is %d times in the navigation of mkdocs.yml, want once", page, count[page])
		}
		if _, ok := listed[name]; !ok && name != "README.md" {
			t.Errorf("docs/README.md does not list %s", page)
		}
		delete(count, page)
	}
	for page := range count {
		t.Errorf("the navigation of mkdocs.yml has %s, which does not exist", page)
	}
}
