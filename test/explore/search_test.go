// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// scripts are what users do in the small world, each step when everything else has come to rest.
var scripts = map[string][]string{
	"edited and deleted": {"creates the claim", "edits the claim", "deletes the claim", "creates the claim"},
	"deleted":            {"creates the claim", "deletes the claim"},
	"kept and adopted": {
		"creates the claim", "keeps the object", "deletes the claim", "creates the claim", "adopts what a former claim left",
	},
	"paused": {"creates the claim", "pauses the claim", "edits the claim", "deletes the claim", "resumes the claim"},
	"moved":  {"creates the claim", "lets objects move", "chooses another target", "edits the claim", "deletes the claim"},
	"namespace made again": {
		"creates the claim", "deletes the namespace", "creates the namespace", "creates the claim", "deletes the claim",
	},
	"deletion slips": {"creates the claim", "deletes the claim before its finalizer counts", "deletes the claim", "creates the claim"},
}

// departures are the kinds of steps by which a path may depart from the usual order, other than another order of what
// can proceed and an early step of the script.
var departures = []string{
	"give up", "time out", "hang", "kill", "land", "lose", "disconnect", "expire", "thaw", "wait", "start",
	"administrator deletes", "administrator removes",
}

// junction is a state on a path, and the steps that could have been done there instead.
type junction struct {
	state   uint64
	instead []string
}

// follow does the given steps, and then the usual ones until the script is done. It returns the junctions.
func (w *world) follow(script, given []string) []junction {
	w.replay([]string{"run a small world", "connect"})
	var out []junction
	for len(w.checker.violations) == 0 && len(out) < maxSteps {
		options := w.options()
		usual := w.usually(script)
		step := usual
		if len(out) < len(given) {
			step = given[len(out)]
		}
		i := slices.IndexFunc(options, func(o option) bool { return o.label == step })
		switch {
		case i < 0 && step == "" && len(script) > 0:
			script = script[1:] // It is not possible any more.
			continue
		case i < 0:
			return out
		}
		j := junction{state: w.state()}
		for _, o := range options {
			if o.label != usual && (o.weight == often || isScripted(o.label, script) ||
				slices.ContainsFunc(departures, func(d string) bool { return strings.HasPrefix(o.label, d) })) {
				j.instead = append(j.instead, o.label)
			}
		}
		if isScripted(step, script) {
			script = script[1:]
		}
		out = append(out, j)
		w.do(options[i])
	}
	return out
}

func isScripted(label string, script []string) bool {
	return len(script) > 0 && strings.HasPrefix(label, "user of ") && strings.HasSuffix(label, " "+script[0])
}

// usually returns the usual next step: what can proceed, the script after a second in which nothing could, and at its
// end what is late. It is empty when the script's next step is not possible.
func (w *world) usually(script []string) string {
	if next := w.next(); next != nil {
		return next.label
	}
	switch {
	case len(w.processes) == 0:
		return "start"
	case w.trace[len(w.trace)-1] != "wait 1s":
		return "wait 1s"
	}
	for _, o := range w.actors() {
		if isScripted(o.label, script) {
			return o.label
		}
	}
	if late := w.landing(); len(script) == 0 && len(late) > 0 {
		return "land " + late[0].label
	}
	return ""
}

// state returns a hash of what the servers have, and of what is on its way. What a process remembers is not in it.
func (w *world) state() uint64 {
	h := fnv.New64a()
	e := json.NewEncoder(h)
	var failed error
	add := func(values ...any) {
		for _, v := range values {
			if err := e.Encode(v); err != nil {
				failed = err
			}
		}
	}
	for _, s := range w.servers() {
		for _, resource := range s.Resources() {
			for _, obj := range s.List(resource) {
				add(obj.Object)
			}
		}
		for _, watch := range s.Watches() {
			add(watch.Client, watch.Resource, watch.Pending())
		}
	}
	for _, p := range w.processes {
		add(p.name, p.isHung(), p.fence.Open())
		for _, c := range p.held() {
			add(c.label, c.body)
		}
	}
	for _, c := range w.landing() {
		add(c.label, c.body, c.landsUntil)
	}
	if failed != nil {
		panic(failed)
	}
	return h.Sum64()
}

// route is the beginning of a path: the steps of another path, and then the last step by which it departs from the
// usual order. departures has all of these.
type route struct {
	script     string
	before     []string
	departures []string
}

func (r route) steps() []string {
	if len(r.departures) == 0 {
		return nil
	}
	return append(slices.Clone(r.before), r.departures[len(r.departures)-1])
}

// visit identifies a departure from a state, given what was departed by before, in any order.
func (r route) visit(state uint64) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprintln(h, r.script, slices.Sorted(slices.Values(r.departures)), state)
	return h.Sum64()
}

// TestSearch follows each script in a small world, and departs from the usual order in every state: once, and then
// again. It follows no departure twice from the same state, if what was departed by before is the same.
func TestSearch(t *testing.T) {
	seed, budget := settings(t)
	rng := rand.New(rand.NewPCG(seed, 1))
	visited, paths := map[uint64]bool{}, 0
	var routes []route
	for _, name := range slices.Sorted(maps.Keys(scripts)) {
		routes = append(routes, route{script: name})
	}
	for depth := 0; len(routes) > 0; depth++ {
		var next []route
		for i, from := range routes {
			if processorTime(t) >= budget {
				t.Logf("%d of %d paths with %d departures, and all with fewer; %d states were departed from", i, len(routes), depth, len(visited))
				return
			}
			paths++
			given := from.steps()
			var junctions []junction
			r := run(t, func(w *world) { junctions = w.follow(scripts[from.script], given) })
			if len(r.violations) > 0 {
				property, _, _ := strings.Cut(r.violations[0], ":")
				t.Logf("%q with %q: %s\n%s", from.script, from.departures, r.violations[0], strings.Join(r.trace, "\n"))
				t.Fatalf("What matters of them, for testdata:\n# %s\n%s", property, strings.Join(shrink(t, r.trace, property), "\n"))
			}
			for at := len(given); at < len(junctions); at++ {
				for _, label := range junctions[at].instead {
					to := route{from.script, r.trace[2 : at+2], append(slices.Clone(from.departures), label)}
					if v := to.visit(junctions[at].state); !visited[v] {
						visited[v] = true
						next = append(next, to)
					}
				}
			}
		}
		rng.Shuffle(len(next), func(i, j int) { next[i], next[j] = next[j], next[i] })
		routes = next
	}
	t.Logf("%d paths are all", paths)
}
