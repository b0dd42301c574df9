// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/masthead-dev/masthead/internal/metricreference"
	"github.com/masthead-dev/masthead/pkg/metric"
	"github.com/masthead-dev/masthead/test/localfleet"
)

// files returns the files of the repository with a suffix, by their path in it.
func files(t *testing.T, suffix string) map[string]string {
	t.Helper()
	root, err := localfleet.Repository()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, suffix) {
			return nil
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		out[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// matches returns the first group of every match in the texts, with a place where it was found.
func matches(texts map[string]string, pattern string) map[string]string {
	out := map[string]string{}
	for path, text := range texts {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			out[m[1]] = path
		}
	}
	return out
}

func TestLinksLeadSomewhere(t *testing.T) {
	pages := files(t, ".md")
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for page, text := range pages {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := page
			if target != "" {
				path = filepath.Join(filepath.Dir(page), target)
			}
			if anchor != "" && strings.HasSuffix(path, ".md") && !slices.Contains(anchors(pages[path]), anchor) {
				t.Errorf("%s: the link %q leads to no heading of %s", page, m[1], path)
			}
			root, err := localfleet.Repository()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s: the link %q leads nowhere", page, m[1])
			}
		}
	}
}

// anchors returns the names under which the headings of a page can be linked to.
func anchors(page string) []string {
	var out []string
	for line := range strings.Lines(withoutCode(page)) {
		heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		clean := regexp.MustCompile(`[^\p{L}\p{N}\- _]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
		name := strings.ReplaceAll(clean, " ", "-")
		anchor := name
		for i := 1; slices.Contains(out, anchor); i++ {
			anchor = fmt.Sprintf("%s-%d", name, i)
		}
		out = append(out, anchor)
	}
	return out
}

func TestNamedTestsExist(t *testing.T) {
	tests := files(t, "_test.go")
	functions := matches(tests, `(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	for name, page := range matches(files(t, ".md"), "`((?:Test|Fuzz|Benchmark)[A-Z]\\w+)`") {
		if functions[name] == "" {
			t.Errorf("%s names the test %s, which does not exist", page, name)
		}
	}
	specs := strings.Join(slices.Collect(maps.Values(tests)), "\n")
	for name, page := range matches(files(t, ".md"), "(?m)e2e: \"([^\"]+)\"") {
		if !strings.Contains(specs, `"`+name+`"`) {
			t.Errorf("%s names the end-to-end spec %q, which does not exist", page, name)
		}
	}
}

// TestWalksNameWhatThereIs checks that each function which docs/design/walks.md names is in the file named before it.
func TestWalksNameWhatThereIs(t *testing.T) {
	root, err := localfleet.Repository()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs", "design", "walks.md"))
	if err != nil {
		t.Fatal(err)
	}
	folder, file, found := "", "", 0
	for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(string(page), -1) {
		name := quoted[1]
		switch {
		case strings.HasPrefix(name, "pkg/"):
			folder = name
		case folder == "":
		case strings.HasSuffix(name, ".go"):
			source, err := os.ReadFile(filepath.Join(root, folder, name))
			if err != nil {
				t.Error(err)
			}
			file = string(source)
		case regexp.MustCompile(`^\w+$`).MatchString(name):
			found++
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\(`).MatchString(file) {
				t.Errorf("%s: the file before it has no function %s", folder, name)
			}
		}
	}
	if found == 0 {
		t.Error("the page names no function")
	}
}

// TestMetricsAreExplained checks that the reference of metrics, which is generated from definitions, has every metric
// that the code publishes, and that no page mentions one that does not exist.
func TestMetricsAreExplained(t *testing.T) {
	series := labelsOfSeries()
	exists := func(name string) bool {
		_, plain := series[name]
		_, histogram := series[name+"_count"]
		return plain || histogram
	}
	code := files(t, ".go")
	maps.DeleteFunc(code, func(path, _ string) bool {
		return strings.HasSuffix(path, "_test.go") || !regexp.MustCompile(`^(pkg|cmd|internal)/`).MatchString(path)
	})
	published := matches(code, `"(masthead_\w+)"`)
	if len(published) == 0 {
		t.Fatal("found no metrics in the code")
	}
	for name, path := range published {
		if !exists(name) {
			t.Errorf("the metric %s (%s) is not in %s: is it made by package metric?", name, path, metricreference.Page)
		}
	}
	pages := files(t, ".md")
	delete(pages, "CHANGELOG.md") // It also mentions what existed earlier.
	for name, path := range matches(pages, "`(masthead_\\w+)") {
		if !exists(name) {
			t.Errorf("%s speaks of the metric %s, which does not exist", path, name)
		}
	}
}

func TestReasonsAreExplained(t *testing.T) {
	code := files(t, ".go")
	maps.DeleteFunc(code, func(path, _ string) bool {
		return strings.HasSuffix(path, "_test.go") || !strings.HasPrefix(path, "pkg/") && !strings.HasPrefix(path, "apis/")
	})
	// Only the code distinguishes the reasons of a bad kubeconfig; users see BadKubeconfig and a message.
	maps.DeleteFunc(code, func(path, _ string) bool { return strings.HasPrefix(path, "pkg/providers/credentials/") })
	docs := strings.Join(slices.Collect(maps.Values(files(t, ".md"))), "\n")
	reasons := matches(code, `(?m)^\s+Reason\w+\s*(?:[\w.]+)?\s*= "(\w+)"`)
	if len(reasons) == 0 {
		t.Fatal("found no reasons in the code")
	}
	for reason, path := range reasons {
		if !strings.Contains(docs, "`"+reason+"`") {
			t.Errorf("the reason %s (%s) is not explained in the documentation", reason, path)
		}
	}
}

// labelsOfSeries returns the labels of each series that can be queried, by the name of the series: a histogram has
// three series.
func labelsOfSeries() map[string][]string {
	series := map[string][]string{}
	for _, g := range metricreference.Groups() {
		for _, d := range g.Metrics {
			names := d.LabelNames()
			if d.Type != metric.TypeHistogram {
				series[d.Name] = names
				continue
			}
			series[d.Name+"_bucket"] = append([]string{"le"}, names...)
			series[d.Name+"_sum"], series[d.Name+"_count"] = names, names
		}
	}
	return series
}
