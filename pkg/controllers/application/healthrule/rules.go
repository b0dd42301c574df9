// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package healthrule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/health"
	"github.com/masthead-dev/masthead/pkg/multicluster"
)

// healthRulesController is the name in logs and metrics of the controller that reads HealthRules.
const healthRulesController = "healthrule"

// allRules is the one request of that controller. Which rule is followed for a kind depends on all of them.
type allRules struct{}

// Rules turns the HealthRules of the hub into the Assessor by which components are judged, and tells their
// authors whether they are followed.
type Rules struct {
	reader client.Reader
	writer client.Client
	clock  clock.PassiveClock

	// library are the rules that are asked after those of the hub; nil for none.
	library *health.Library

	// changed is called with what selects the objects that have to be assessed again. It must not block.
	changed func([]health.Selector)

	// following is nil until the rules have been read. Only Reconcile, of which one runs at a time, sets it.
	following atomic.Pointer[followed]

	// written is what was last written of each rule, for Reconcile alone.
	written map[types.UID]writtenStatus
}

// writtenStatus is a status, and the version of the rule that lacked it. While the cache still shows that version, the
// status must not be written again: its time would be another one.
type writtenStatus struct {
	over, reason, message string
	generation            int64
}

// followed is a set of rules with the Assessor that follows them.
type followed struct {
	assessor health.Assessor

	// compiled are the rules, also those that are not followed.
	compiled map[revision]*health.Rule

	// chosen are the rules that are followed for what rules select: the oldest, and as long as that can leave something to
	// be said, the next.
	chosen map[health.Selector][]revision
}

// revision is what a rule was compiled from.
type revision struct {
	uid        types.UID
	generation int64
}

// New returns healthRules that read from the manager's cache and write to the hub. changed is called once
// the rules have been read for the first time, and whenever another rule is followed for some kinds.
func New(
	reader client.Reader, writer client.Client, clk clock.PassiveClock, library *health.Library, changed func([]health.Selector),
) *Rules {
	return &Rules{
		reader: reader, writer: writer, clock: clk, library: library, changed: changed, written: map[types.UID]writtenStatus{},
	}
}

// Assessor returns what components are judged by now. It is false until the rules have been read: judging components
// without them would write what is taken back at once.
func (h *Rules) Assessor() (health.Assessor, bool) {
	f := h.following.Load()
	if f == nil {
		return nil, false
	}
	return f.assessor, true
}

// Setup adds the controller that follows HealthRules to a manager.
func (h *Rules) Setup(mgr manager.Manager, skipNameValidation *bool) error {
	c, err := controller.NewTyped(healthRulesController, mgr, controller.TypedOptions[allRules]{
		Reconciler: h, MaxConcurrentReconciles: 1, SkipNameValidation: skipNameValidation,
		NewQueue: multicluster.NewHubQueue[allRules],
		LogConstructor: func(*allRules) logr.Logger {
			return mgr.GetLogger().WithValues("controller", healthRulesController)
		},
	})
	if err != nil {
		return fmt.Errorf("cannot make the controller %q: %w", healthRulesController, err)
	}
	all := func(context.Context, *fleetv1alpha1.HealthRule) []allRules { return []allRules{{}} }
	rules := source.TypedKind(mgr.GetCache(), &fleetv1alpha1.HealthRule{}, handler.TypedEnqueueRequestsFromMapFunc(all),
		predicate.TypedResourceVersionChangedPredicate[*fleetv1alpha1.HealthRule]{})
	if err := c.Watch(rules); err != nil {
		return fmt.Errorf("cannot watch HealthRules: %w", err)
	}
	// Without a single rule no event comes, and it has to be known that there is none.
	if err := c.Watch(source.TypedFunc[allRules](enqueueAllRules)); err != nil {
		return fmt.Errorf("cannot begin to read HealthRules: %w", err)
	}
	return nil
}

// Reconcile follows the rules as they are now.
func (h *Rules) Reconcile(ctx context.Context, _ allRules) (reconcile.Result, error) {
	var list fleetv1alpha1.HealthRuleList
	if err := h.reader.List(ctx, &list); err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot list HealthRules: %w", err)
	}
	rules := slices.DeleteFunc(list.Items, func(r fleetv1alpha1.HealthRule) bool { return !r.DeletionTimestamp.IsZero() })
	slices.SortFunc(rules, olderFirst)

	before := h.following.Load()
	now := follow(rules, before, h.library)
	h.following.Store(now)
	if selectors := differences(before, now); before == nil || len(selectors) > 0 {
		h.changed(selectors)
	}
	var errs []error
	for i := range rules {
		errs = append(errs, h.write(ctx, &rules[i], ruleStatus(&rules[i], rules, now, h.clock.Now())))
	}
	maps.DeleteFunc(h.written, func(uid types.UID, _ writtenStatus) bool {
		return !slices.ContainsFunc(rules, func(r fleetv1alpha1.HealthRule) bool { return r.UID == uid })
	})
	return reconcile.Result{}, kerrors.NewAggregate(errs)
}

// write applies the status of a rule if it differs.
func (h *Rules) write(ctx context.Context, rule *fleetv1alpha1.HealthRule, status fleetv1alpha1.HealthRuleStatus) error {
	ready := status.Conditions[0]
	writing := writtenStatus{
		over: rule.ResourceVersion, reason: ready.Reason, message: ready.Message, generation: status.ObservedGeneration,
	}
	if equality.Semantic.DeepEqual(rule.Status, status) || h.written[rule.UID] == writing {
		return nil
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fleetv1alpha1.GroupVersion.String(),
		"kind":       "HealthRule",
		// The UID makes sure that a rule that was deleted meanwhile is not created again without a spec.
		"metadata": map[string]any{"name": rule.Name, "uid": string(rule.UID)},
		"status": map[string]any{
			"observedGeneration": status.ObservedGeneration,
			"conditions":         appliedConditions(status.Conditions),
		},
	}}
	err := h.writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u),
		client.FieldOwner(fleetv1alpha1.FieldManager), client.ForceOwnership)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // The rule was deleted or replaced, which the watch says too.
	}
	if err != nil {
		return fmt.Errorf("cannot apply the status of HealthRule %q: %w", rule.Name, err)
	}
	h.written[rule.UID] = writing
	return nil
}
