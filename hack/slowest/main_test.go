// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2/types"
)

func TestSlowest(t *testing.T) {
	events := `{"Action":"start","Package":"github.com/masthead-dev/masthead/pkg/a"}
{"Action":"pass","Package":"github.com/masthead-dev/masthead/pkg/a","Test":"TestOne","Elapsed":1.5}
{"Action":"pass","Package":"github.com/masthead-dev/masthead/pkg/a","Test":"TestTwo/Sub","Elapsed":9}
{"Action":"fail","Package":"github.com/masthead-dev/masthead/pkg/a","Test":"TestTwo","Elapsed":9.25}
{"Action":"output","Package":"github.com/masthead-dev/masthead/pkg/a","Test":"TestTwo","Output":"x"}
{"Action":"pass","Package":"github.com/masthead-dev/masthead/pkg/a","Elapsed":11}
`
	spec := types.SpecReport{LeafNodeType: types.NodeTypeIt, LeafNodeText: "carries a claim", RunTime: 3 * time.Second}
	setup := types.SpecReport{LeafNodeType: types.NodeTypeBeforeSuite, RunTime: time.Minute}
	ginkgo, err := json.Marshal([]types.Report{{SpecReports: types.SpecReports{spec, setup}}})
	if err != nil {
		t.Fatal(err)
	}
	var all []timed
	for _, data := range [][]byte{[]byte(events), ginkgo} {
		found, err := read(data)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	want := "the slowest of 3 tests:\n    9.3s  pkg/a TestTwo\n      3s  test/e2e carries a claim\n    1.5s  pkg/a TestOne\n"
	if got := report(all); got != want {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
	if _, err := read([]byte("no JSON")); err == nil {
		t.Error("want an error for what is in neither format")
	}
}
