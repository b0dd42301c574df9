// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// preflightTimeout bounds one request. A limit for all of them would keep the manager from starting beside a slow hub.
const preflightTimeout = 30 * time.Second

// hubQuestions are the preflight's queries to the hub.
type hubQuestions interface {
	// Serves reports whether the hub serves a resource.
	Serves(ctx context.Context, resource schema.GroupVersionResource) (bool, error)

	// May reports whether the manager may do something.
	May(ctx context.Context, r right, verb string) (bool, error)
}

// missing is what the hub lacks, and how to install it; without is what does not work meanwhile, or empty if nothing
// works.
type missing struct {
	what, install, without string
}

// lacking returns what the hub lacks.
func lacking(ctx context.Context, hub hubQuestions, kinds []requiredKind, rights []right) ([]missing, error) {
	var lacks []missing
	for _, k := range kinds {
		served, err := hub.Serves(ctx, k.GroupVersionResource)
		if err != nil {
			return nil, fmt.Errorf("cannot query the hub for the kinds that it serves: %w", err)
		}
		if !served {
			lacks = append(lacks, missing{"the CRD " + k.GroupResource().String() + " in version " + k.Version, k.install, ""})
		}
	}
	for _, r := range rights {
		var verbs []string
		for _, verb := range r.verbs {
			may, err := hub.May(ctx, r, verb)
			if err != nil {
				return nil, fmt.Errorf("cannot query the hub for the manager's rights: %w", err)
			}
			if !may {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			lacks = append(lacks, missing{"the right to " + strings.Join(verbs, ", ") + " " + r.String(), installRights, r.without})
		}
	}
	return lacks, nil
}

// String describes the right as part of a sentence.
func (r right) String() string {
	s := schema.GroupResource{Group: r.group, Resource: r.resource}.String()
	if sub, ok := strings.CutSuffix(r.resource, "/status"); ok {
		s = "the status of " + schema.GroupResource{Group: r.group, Resource: sub}.String()
	}
	if r.name != "" {
		s += fmt.Sprintf(" %q", r.name)
	}
	if r.namespace != "" {
		s += fmt.Sprintf(" in namespace %q", r.namespace)
	}
	return s
}

// explain describes in one text what the hub lacks and what to install, each command once.
func explain(lacks []missing) string {
	var installs []string
	byInstall := map[string][]string{}
	for _, l := range lacks {
		if !slices.Contains(installs, l.install) {
			installs = append(installs, l.install)
		}
		byInstall[l.install] = append(byInstall[l.install], l.what)
	}
	var b strings.Builder
	b.WriteString("the hub lacks what Masthead needs, and Masthead waits for it")
	for _, install := range installs {
		fmt.Fprintf(&b, "; install %s with: %s", strings.Join(byInstall[install], " and "), install)
	}
	return b.String()
}

// split separates what the manager waits for from what is optional.
func split(lacks []missing) (required, optional []missing) {
	for _, l := range lacks {
		if l.without == "" {
			required = append(required, l)
		} else {
			optional = append(optional, l)
		}
	}
	return required, optional
}

// preflight waits until the hub has everything that the manager needs. What is missing is logged once, again when it
// changes, and reported by /readyz meanwhile. Missing optional requirements are logged once, at the end.
func preflight(ctx context.Context, hub hubQuestions, o Options, h *health, log logr.Logger) error {
	kinds, rights := requiredKinds(o), requiredRights(o)
	said := ""
	again := wait.Backoff{Duration: time.Second, Factor: 1.5, Jitter: 0.1, Steps: 10, Cap: 15 * time.Second}
	return again.DelayFunc().Until(ctx, true, false, func(ctx context.Context) (bool, error) {
		lacks, err := lacking(ctx, hub, kinds, rights)
		lacks, optional := split(lacks)
		if err == nil && len(lacks) == 0 {
			for _, l := range optional {
				log.Info("Continuing without "+l.what, "consequence", l.without)
			}
			if said != "" {
				log.Info("The hub has everything that Masthead requires")
			}
			h.notReady("the caches of the hub are being synced")
			return true, nil
		}
		says := explain(lacks)
		if err != nil {
			says = err.Error()
		}
		h.notReady(says)
		if says != said && ctx.Err() == nil {
			log.Error(nil, says)
		}
		said = says
		return false, nil
	})
}

// apiQuestions queries the hub's API server. Every authenticated user may ask both questions.
type apiQuestions struct {
	client kubernetes.Interface
}

func newHubQuestions(cfg *rest.Config) (hubQuestions, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = preflightTimeout
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("cannot create a client for the hub: %w", err)
	}
	return &apiQuestions{client: client}, nil
}

// Serves uses discovery, which needs no right to read CRDs.
func (q *apiQuestions) Serves(_ context.Context, resource schema.GroupVersionResource) (bool, error) {
	list, err := q.client.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }), nil
}

// May checks the manager's own rights.
func (q *apiQuestions) May(ctx context.Context, r right, verb string) (bool, error) {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: r.group, Resource: resource, Subresource: subresource,
			Namespace: r.namespace, Name: r.name, Verb: verb,
		},
	}}
	review, err := q.client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}
