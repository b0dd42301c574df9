// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/masthead-dev/masthead/test/bench/apiserver"
)

// A question is a case in which a controller of Applications can go wrong.
type question struct {
	// title and right are for the table: what the case is, and what should happen.
	title, right string

	// objects are created, each in its collection, before the Applications are. %s in a collection is the namespace.
	objects []struct{ collection, body string }

	// applications are created in their order. The last is the one whose status is waited for.
	applications []application

	// tell describes what happened.
	tell func(outcome) string
}

type application struct {
	name, selector string
	parts          []part
}

// outcome is what happened in a case.
type outcome struct {
	// ended is whether the program has ended by itself.
	ended bool

	// verdicts are the contents of the statuses in words, by Application.
	verdicts map[string]string

	// owned are the names of the ConfigMaps that have an Application as an owner, in order.
	owned []string

	// requests is the number of requests that the program sent to the workload cluster.
	requests int
}

// answer is the behaviour of the programs in a case.
type answer struct {
	question question
	by       map[string]string
}

const (
	shop     = `{"matchLabels":{"app":"shop"}}`
	thingCRD = "things.bench.example.org"
)

func configMap(name, app string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","labels":{"app":"%s"},"annotations":{"kubernetes.io/application":"%s"}}}`, name, app, app)
}

// questions are the cases. Research into kubernetes-sigs/application found them.
func questions() []question {
	const configMaps = "/api/v1/namespaces/%s/configmaps"
	type objects = []struct{ collection, body string }
	mine := part{name: "mine", version: "v1", kind: "ConfigMap"}
	return []question{
		{
			title: "The selector has only matchExpressions; of three ConfigMaps, it selects one",
			right: "owns that one",
			objects: objects{
				{configMaps, configMap("mine", "shop")}, {configMaps, configMap("stranger-1", "other")}, {configMaps, configMap("stranger-2", "other")},
			},
			applications: []application{{"shop", `{"matchExpressions":[{"key":"app","operator":"In","values":["shop"]}]}`, []part{mine}}},
			tell:         func(o outcome) string { return "owns " + strings.Join(o.owned, ", ") + "; " + o.verdicts["shop"] },
		},
		{
			title:        "A component is of a kind that the cluster does not serve",
			right:        "says that it is not there",
			applications: []application{{"shop", shop, []part{{name: "widget", group: "nowhere.example.org", version: "v1", kind: "Widget"}}}},
			tell:         func(o outcome) string { return o.verdicts["shop"] },
		},
		{
			title: "A condition of a custom resource has no reason; a second Application has a ConfigMap only",
			right: "both get a status",
			objects: objects{
				{"/apis/bench.example.org/v1/namespaces/%s/things", `{"apiVersion":"bench.example.org/v1","kind":"Thing","metadata":{"name":"thing",` +
					`"labels":{"app":"first"},"annotations":{"kubernetes.io/application":"first"}},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`},
				{configMaps, configMap("mine", "shop")},
			},
			applications: []application{
				{"first", `{"matchLabels":{"app":"first"}}`, []part{{name: "thing", group: "bench.example.org", version: "v1", kind: "Thing"}}},
				{"shop", shop, []part{mine}},
			},
			tell: func(o outcome) string {
				return fmt.Sprintf("the first: %s; the second: %s", orNone(o.verdicts["first"]), orNone(o.verdicts["shop"]))
			},
		},
		{
			title: `The group of a Service is written as "core", as in an example of kubernetes-sigs/application`,
			right: "says that there is no such kind, and asks for it no more than a few times",
			objects: objects{{"/api/v1/namespaces/%s/services", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"mine","labels":{"app":"shop"},` +
				`"annotations":{"kubernetes.io/application":"shop"}},"spec":{"clusterIP":"None","ports":[{"port":80}]}}`}},
			applications: []application{{"shop", shop, []part{{name: "mine", group: "core", version: "v1", kind: "Service"}}}},
			tell: func(o outcome) string {
				return fmt.Sprintf("%s; %d requests", o.verdicts["shop"], o.requests)
			},
		},
	}
}

func orNone(verdict string) string {
	if verdict == "" {
		return "no status"
	}
	return verdict
}

// describe returns the outcome of a case in words.
func (o outcome) describe(q question) string {
	text := strings.TrimPrefix(q.tell(o), "; ")
	if o.ended {
		return "the program crashes; " + text
	}
	return text
}

// ask runs each program in each case, and records what it does.
func (w *world) ask(ctx context.Context, say func(string, ...any)) ([]answer, error) {
	subjects := []string{masthead}
	if w.settings.peer != noPeer {
		subjects = append(subjects, peerName)
	}
	if err := w.workload.Apply(ctx, apiserver.CRDPath+thingCRD, thingDefinition()); err != nil {
		return nil, err
	}
	var answers []answer
	for _, q := range questions() {
		a := answer{question: q, by: map[string]string{}}
		for _, name := range subjects {
			o, err := w.outcome(ctx, name, q)
			if err != nil {
				a.by[name] = "not seen"
				say("%s: %s: %s", q.title, name, err)
			} else {
				a.by[name] = o.describe(q)
				say("%s: %s: %s", q.title, name, a.by[name])
			}
			if ctx.Err() != nil {
				return answers, ctx.Err()
			}
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// thingDefinition is a kind without a schema: the status of its objects can have any content.
func thingDefinition() string {
	return apiserver.Manifest("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", thingCRD, map[string]any{"spec": map[string]any{
		"group": "bench.example.org", "scope": "Namespaced",
		"names": map[string]any{"kind": "Thing", "listKind": "ThingList", "plural": "things", "singular": "thing"},
		"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		}}},
	}})
}

// caseFor is the time that a program has to write a status for the last Application of a case.
const caseFor = 30 * time.Second

// outcome runs a program in a case, and records what happens.
func (w *world) outcome(ctx context.Context, name string, q question) (o outcome, err error) {
	s, err := w.prepare(ctx, name)
	if err != nil {
		return o, err
	}
	w.runs++
	namespace := fmt.Sprintf("case-%d", w.runs)
	if err := w.arrange(ctx, s.kind(), q, namespace); err != nil {
		return o, err
	}
	tails, err := w.tails(s.user())
	if err != nil {
		return o, err
	}
	defer func() { err = errors.Join(err, s.stop(), w.empty(context.WithoutCancel(ctx), s.kind(), namespace)) }()
	program, err := s.start(ctx, w.settings.periods[0])
	if err != nil {
		return o, err
	}
	last := q.applications[len(q.applications)-1].name
	err = wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, caseFor, true, func(ctx context.Context) (bool, error) {
		verdict, err := s.kind().verdict(ctx, namespace, last)
		return verdict != "" || isClosed(program.exited), err
	})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return o, err
	}
	if err := tails.Settle(ctx); err != nil {
		return o, err
	}
	o = outcome{ended: isClosed(program.exited), verdicts: map[string]string{}}
	for _, n := range tails.AtWorkloads {
		o.requests += n
	}
	for _, a := range q.applications {
		if o.verdicts[a.name], err = s.kind().verdict(ctx, namespace, a.name); err != nil {
			return o, err
		}
	}
	o.owned, err = w.owned(ctx, namespace)
	return o, err
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// arrange creates the objects of a case.
func (w *world) arrange(ctx context.Context, k applicationKind, q question, namespace string) error {
	if err := w.createNamespace(ctx, namespace); err != nil {
		return err
	}
	for _, o := range q.objects {
		if err := w.workload.Create(ctx, fmt.Sprintf(o.collection, namespace), []byte(o.body)); err != nil {
			return err
		}
	}
	for _, a := range q.applications {
		if err := w.workload.Create(ctx, k.collection(namespace), k.manifest(a.name, a.selector, a.parts)); err != nil {
			return err
		}
	}
	return nil
}

// owned are the ConfigMaps in a namespace that have an Application as an owner.
func (w *world) owned(ctx context.Context, namespace string) ([]string, error) {
	var list struct {
		Items []struct {
			Metadata struct {
				Name            string `json:"name"`
				OwnerReferences []struct {
					Kind string `json:"kind"`
				} `json:"ownerReferences"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := w.workload.Get(ctx, collection("", "v1", "configmaps", namespace), &list); err != nil {
		return nil, err
	}
	var names []string
	for _, o := range list.Items {
		for _, ref := range o.Metadata.OwnerReferences {
			if ref.Kind == "Application" {
				names = append(names, o.Metadata.Name)
			}
		}
	}
	slices.Sort(names)
	return names, nil
}
