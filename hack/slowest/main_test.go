// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
)

func TestSlowest(t *testing.T) {
	events := `{"Action":"start","Package":"github.com/masthead-dev/masthead/pkg/a"}
{"Action":"pass","Package":"github.com/masthead-dev/masthead/pkg/a","Test":"TestOne","Elapsed":1.5}
{"Action":"pass","Package":"github.com/masthead-dev/masthead/pkg/a","Test":"TestTwo/Sub","Elapsed":9}
{"Action":"fail","Package":"github.com/masthead-dev/masthead/pkg/a","Test":"TestTwo","Elapsed":9.25}
{"Action":"output","Package":"github.com/masthead-dev/masthead/pkg/a","Test":"TestTwo","Output":"x"}
{"Action":"pass","Package":"github.com/masthead-dev/masthead/pkg/a","Elapsed":11}
`
	ginkgo := `[{"SuitePath":"e2e","SpecReports":[
{"ContainerHierarchyTexts":["A fleet"],"LeafNodeType":"It","LeafNodeText":"carries a claim","RunTime":3000000000},
{"ContainerHierarchyTexts":null,"LeafNodeType":"BeforeSuite","LeafNodeText":"","RunTime":60000000000}]}]`
	var all []timed
	for _, data := range []string{events, ginkgo} {
		found, err := read([]byte(data))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	want := "the slowest of 3 tests:\n    9.3s  pkg/a TestTwo\n      3s  test/e2e A fleet carries a claim\n    1.5s  pkg/a TestOne\n"
	if got := report(all); got != want {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
	if _, err := read([]byte("no JSON")); err == nil {
		t.Error("want an error for what is in neither format")
	}
}
