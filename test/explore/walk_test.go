// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/test/explore/apiserver"
)

// options returns every possible next step, in a fixed order.
func (w *world) options() []option {
	out := w.proceed()
	out = append(out, w.faults()...)
	out = append(out, w.actors()...)
	out = append(out, w.restore()...)
	out = append(out, w.moveClocks()...)
	out = append(out, w.refusals()...)
	out = append(out, option{"rest", rare, w.rest})
	for _, d := range []time.Duration{time.Second, 5 * time.Second, 20 * time.Second, 2 * time.Minute} {
		out = append(out, option{"wait " + d.String(), occasional, func() { advance(d) }})
	}
	return numbered(out)
}

// proceed returns the steps without faults.
func (w *world) proceed() []option {
	var out []option
	for _, p := range w.processes {
		if p.isHung() {
			continue
		}
		for _, c := range p.held() {
			out = append(out, option{"pass " + c.label, often, func() { p.pass(c) }})
		}
	}
	for _, s := range w.servers() {
		for _, watch := range s.Watches() {
			if watch.Pending() > 0 && !w.isHung(watch.Client) {
				out = append(out, option{"deliver " + w.serverName(s) + " " + watch.Resource.Resource, often, watch.Deliver})
			}
		}
	}
	return append(out, w.background()...)
}

func (w *world) isHung(client string) bool {
	for _, p := range w.processes {
		if p.name == client {
			return p.isHung()
		}
	}
	return false
}

// faults returns what can go wrong.
func (w *world) faults() []option {
	var out []option
	free := map[*hub]bool{w.hub: true, w.other: w.isConnected() && !w.checker.withdrawn}
	for _, p := range w.processes {
		free[p.hub] = free[p.hub] && p.expired()
		out = append(out, option{"kill " + p.name, rare, func() { w.kill(p) }})
		if p.isHung() {
			out = append(out, option{"thaw " + p.name, occasional, func() { p.thaw() }})
		} else {
			out = append(out, option{"hang " + p.name, rare, func() { p.freeze() }})
		}
		for _, c := range p.held() {
			out = append(out, option{"lose " + c.label, rare, func() { p.lose(c) }})
			if !c.isRead() {
				out = append(out, option{"lose the response of " + c.label, rare, func() { p.loseResponse(c) }},
					option{"give up " + c.label, rare, func() { p.giveUp(c) }},
					option{"time out " + c.label, rare, func() { p.timeOut(c) }})
			}
		}
	}
	if free[w.hub] && len(w.processes) < 3 {
		out = append(out, option{"start", often, func() { w.start(w.hub) }})
	}
	if free[w.other] && len(w.processes) < 3 {
		out = append(out, option{"start the other hub", rare, func() {
			if w.other.holder == nil {
				w.fill(w.other.Server)
			}
			w.start(w.other)
		}})
	}
	for _, c := range w.landing() {
		out = append(out, option{"land " + c.label, usual, func() { w.land(c) }})
	}
	for _, s := range w.servers() {
		if len(s.Watches()) > 0 {
			out = append(out, option{"expire the history of " + w.serverName(s), rare, func() { w.checker.expires(s); s.Expire() }})
		}
		for _, watch := range s.Watches() {
			out = append(out, option{"disconnect " + w.serverName(s) + " " + watch.Resource.Resource, rare, func() {
				w.checker.disconnects(s, watch)
				watch.Disconnect()
			}})
			if watch.Pending() == 0 && !w.isHung(watch.Client) {
				out = append(out, option{"bookmark " + w.serverName(s) + " " + watch.Resource.Resource, rare, watch.Deliver})
			}
		}
	}
	return out
}

// numbered makes labels unique, and the order the same each time.
func numbered(options []option) []option {
	slices.SortStableFunc(options, func(a, b option) int { return strings.Compare(a.label, b.label) })
	seen := map[string]int{}
	for i, o := range options {
		if seen[o.label]++; seen[o.label] > 1 {
			options[i].label += fmt.Sprintf(" #%d", seen[o.label])
		}
	}
	return options
}

// advance lets time pass on the fake clock of the bubble. No real time passes.
func advance(d time.Duration) { <-time.After(d) }

func (p *process) pass(c *call) {
	p.take(c)
	resp, err := c.execute(c.request.Context()) //nolint:bodyclose // The client closes it.
	c.response <- response{resp, err}
}

// lose fails a request that did not reach the server.
func (p *process) lose(c *call) {
	p.take(c)
	c.response <- response{err: errConnectionLost}
}

// loseResponse executes a request and fails it.
func (p *process) loseResponse(c *call) {
	p.take(c)
	if resp, err := c.execute(c.request.Context()); err == nil {
		_ = resp.Body.Close()
	}
	c.response <- response{err: errConnectionLost}
}

// giveUp fails a request that is still on its way.
func (p *process) giveUp(c *call) {
	p.abandon(c)
	c.response <- response{err: errConnectionLost}
}

// timeOut has the server give up a request that is still on its way.
func (p *process) timeOut(c *call) {
	p.abandon(c)
	resp := apiserver.Refuse(c.request, apierrors.NewTimeoutError("the store did not answer", 1)) //nolint:bodyclose // The client closes it.
	c.response <- response{Response: resp}
}

// landing returns the late requests that can still be executed.
func (w *world) landing() []*call {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = slices.DeleteFunc(w.late, func(c *call) bool { return !time.Now().Before(c.landsUntil) })
	return slices.Clone(w.late)
}

func (w *world) land(c *call) {
	w.mu.Lock()
	w.late = slices.DeleteFunc(w.late, func(other *call) bool { return other == c })
	w.mu.Unlock()
	w.checker.landing = c.givenUp
	defer func() { w.checker.landing = time.Time{} }()
	// Its sender's context has ended.
	resp, err := c.execute(context.WithoutCancel(c.request.Context()))
	if err != nil {
		panic(err)
	}
	_ = resp.Body.Close()
}

func (w *world) kill(p *process) {
	p.kill()
	w.checker.forgets(p.name, w.clusters...)
	w.processes = slices.DeleteFunc(w.processes, func(other *process) bool { return other == p })
	for _, s := range w.servers() {
		for _, watch := range s.Watches() {
			if watch.Client == p.name {
				watch.Disconnect()
			}
		}
	}
}

// do does a step and waits until the processes wait for the next one.
func (w *world) do(o option) {
	w.trace = append(w.trace, o.label)
	o.do()
	synctest.Wait()
	w.reap()
}

// reap removes processes that have ended on their own.
func (w *world) reap() {
	for _, p := range slices.Clone(w.processes) {
		if p.hasExited() {
			w.kill(p)
		}
	}
}

// connect lets everything proceed until the controllers watch what they are about in every cluster. Most walks begin
// with it.
func (w *world) connect() {
	for range maxSteps {
		if options := w.proceed(); len(options) > 0 {
			numbered(options)[0].do()
		} else if w.isConnected() {
			return
		} else {
			advance(time.Second)
		}
		synctest.Wait()
	}
}

// rest lets everything proceed until only time can bring a next step. It has to come to that, unless the watch that
// would end a loop waits for its back-off.
func (w *world) rest() {
	for step := range maxSteps / 10 {
		options := w.proceed()
		if len(options) == 0 {
			return
		}
		numbered(options)[0].do()
		synctest.Wait()
		if step%100 == 99 {
			advance(2 * time.Second)
		}
	}
	w.checker.fail("Everything comes to rest", "there is always a next step, and hardly any time passes")
}

func (w *world) isConnected() bool {
	for _, c := range w.clusters {
		for _, resource := range w.runs.watched() {
			if !slices.ContainsFunc(c.server.Watches(), func(watch *apiserver.Watch) bool { return watch.Resource == resource }) {
				return false
			}
		}
	}
	return true
}

// walk does random steps. Each walk has some kinds of infrequent ones only, so that it gets further, and a few of them
// often. In some walks, requests to or watches of some servers are slow, so that more happens meanwhile.
func (w *world) walk(rng *rand.Rand, steps int) {
	w.replay(swarms[rng.IntN(len(swarms))])
	w.begin()
	if rng.IntN(4) > 0 {
		w.do(option{label: "connect", do: w.connect})
	}
	factors := map[string]float64{}
	weight := func(o option) int {
		k := stepKind(o.label)
		if _, drawn := factors[k]; !drawn {
			factors[k] = 1
			switch {
			case o.weight == often:
				factors[k] = []float64{1, 1, 0.1, 0.025}[rng.IntN(4)]
			case o.weight <= occasional:
				factors[k] = []float64{0, 0, 0, 0, 1, 5}[rng.IntN(6)]
			}
		}
		return int(factors[k] * float64(o.weight))
	}
	for range steps {
		options, total := w.options(), 0
		for _, o := range options {
			total += weight(o)
		}
		if total == 0 {
			return
		}
		n := rng.IntN(total)
		for _, o := range options {
			if n -= weight(o); n < 0 {
				w.do(o)
				break
			}
		}
		if len(w.checker.violations) > 0 {
			return
		}
	}
}

// stepKind returns what a step is about, other than of whom.
func stepKind(label string) string {
	words := strings.Fields(label)
	switch words[0] {
	case "user":
		return strings.Join(words[3:], " ")
	case "administrator", "start", "pass", "deliver":
		return strings.Join(words[:min(2, len(words))], " ")
	}
	return words[0]
}

// replay does the steps of a list that are possible when their turn comes.
func (w *world) replay(labels []string) {
	for _, label := range labels {
		options := w.draws()
		if !strings.HasPrefix(label, "run ") {
			w.begin()
			options = append(w.options(), option{label: "connect", do: w.connect})
		}
		if i := slices.IndexFunc(options, func(o option) bool { return o.label == label }); i >= 0 {
			w.do(options[i])
		}
		if len(w.checker.violations) > 0 {
			return
		}
	}
}

// Everything has come to rest when nothing has been written for restFor. It has to, within maxSteps.
const (
	restFor  = 12 * time.Minute
	restStep = 5 * time.Second
	maxSteps = 20_000

	// maxRetries is how often one request can be sent again when nothing has been written for soon.
	maxRetries = 2
)

// settle stops all faults and what users hold, offers the claim kind again, lets everything proceed until it rests, and
// checks the result.
func (w *world) settle() {
	w.letGo()
	w.setMode(fleetv1alpha1.AgentModeReadWrite)
	for _, s := range w.servers() {
		s.Admit = nil
	}
	for _, p := range slices.Clone(w.processes) {
		if p.thaw(); !p.holds() || p.hub == w.other {
			w.kill(p) // It notices that it has lost the lease.
		}
	}
	if w.withdraws() {
		if !w.comesToRest() {
			return
		}
		w.checker.withdrawnSettled()
	}
	w.setPublished("true")
	if !w.comesToRest() {
		return
	}
	w.checker.settled()
	for _, disturb := range []func() bool{w.deleteCopies, w.changeOffer, w.emptyFields} {
		if len(w.checker.violations) == 0 && disturb() && w.comesToRest() {
			w.checker.settled()
		}
	}
}

// comesToRest lets everything proceed until it rests, and reports whether it does without breaking a property.
func (w *world) comesToRest() bool {
	w.quiet = 0
	before, steps, late := w.versions(), 0, map[string]int{}
	var last []string
	for ; w.quiet < restFor && steps < maxSteps; steps++ {
		if w.reap(); len(w.processes) == 0 {
			w.start(w.hub)
			synctest.Wait()
		}
		if next := w.next(); next != nil {
			last = append(last[max(0, len(last)-7):], next.label)
			// A write that failed may be tried again late, but not for ever.
			if w.quiet > soon && isWrite(next.label) {
				if late[next.label]++; late[next.label] > maxRetries {
					w.checker.fail("Nothing is written at rest", "%q again after %s", next.label, w.quiet)
				}
			}
			next.do()
			synctest.Wait()
			if steps%20 == 0 {
				advance(time.Second) // A loop ends when a watch that waits for its back-off is back.
			}
		} else {
			advance(restStep)
			synctest.Wait()
			w.quiet += restStep
			w.letGo()
		}
		if now := w.versions(); now != before {
			w.quiet, before = 0, now
		}
		if len(w.checker.violations) > 0 {
			return false
		}
	}
	if steps == maxSteps {
		w.checker.fail("Everything comes to rest", "it ends with %q", last)
		return false
	}
	return true
}

// letGo has users resume their claims and remove their finalizers. A closed definition refuses that until it is open.
func (w *world) letGo() {
	for _, c := range w.clusters {
		for _, claim := range c.server.List(claims) {
			edited := claim.DeepCopy()
			if held := controllerutil.RemoveFinalizer(edited, userFinalizer); !held && !isPaused(claim) {
				continue
			}
			w.patch(c.server, "user", path(claims, "v1alpha1", claim.GetNamespace(), claim.GetName()), map[string]any{
				"metadata": map[string]any{
					"annotations": map[string]any{fleetv1alpha1.PausedAnnotation: nil}, "finalizers": edited.GetFinalizers(),
				},
			})
		}
	}
}

// isWrite reports whether a step executes a write of a process.
func isWrite(label string) bool {
	return strings.HasPrefix(label, "pass ") && !strings.Contains(label, " GET ")
}

// next returns the next step towards rest; nil if only time can bring one. What is late has been lost.
func (w *world) next() *option {
	if options := w.proceed(); len(options) > 0 {
		return &numbered(options)[0]
	}
	for _, obj := range w.hub.List(claims) {
		if options := w.crossplane(obj); len(options) > 0 {
			return &options[0]
		}
	}
	return nil
}

// versions returns the sum of the servers' versions, which each write raises.
func (w *world) versions() int64 {
	sum := int64(0)
	for _, s := range w.servers() {
		sum += s.Version()
	}
	return sum
}

// end ends all processes, without which a bubble does not end.
func (w *world) end() {
	ended := make([]*process, 0, len(w.processes))
	for _, p := range slices.Clone(w.processes) {
		w.kill(p)
		ended = append(ended, p)
	}
	for _, p := range ended {
		<-p.ended
	}
}

// result is what came of a walk: the properties that were broken, and the steps.
type result struct {
	violations []string
	trace      []string
	// operations is the length of the history of the names of the hub.
	operations int
}

// run runs a world in a bubble: what is given, and then everything until it rests.
func run(t *testing.T, drive func(*world)) result {
	t.Helper()
	var out result
	synctest.Test(t, func(*testing.T) {
		w := newWorld()
		drive(w)
		w.begin()
		if len(w.checker.violations) == 0 {
			w.settle()
		}
		out = result{violations: w.checker.violations, trace: w.trace, operations: w.checker.names.Len()}
		w.end()
	})
	return out
}

// shrink removes steps from a failing sequence as long as it breaks the same property.
func shrink(t *testing.T, trace []string, property string) []string {
	t.Helper()
	breaks := func(steps []string) bool {
		r := run(t, func(w *world) { w.replay(steps) })
		return len(r.violations) > 0 && strings.HasPrefix(r.violations[0], property)
	}
	for size := len(trace) / 2; size > 0; {
		removed := false
		for from := 0; from+size <= len(trace); {
			without := slices.Concat(trace[:from], trace[from+size:])
			if breaks(without) {
				trace, removed = without, true
			} else {
				from += size
			}
		}
		if !removed || size > len(trace) {
			size /= 2
		}
	}
	return trace
}
