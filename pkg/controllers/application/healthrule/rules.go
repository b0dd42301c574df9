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
	"github.com/masthead-dev/masthead/pkg/apply"
	"github.com/masthead-dev/masthead/pkg/health"
)

// healthRulesController names the controller that reads HealthRules in logs and metrics.
const healthRulesController = "healthrule"

// allRules is the only request of that controller: which rule is followed for a kind depends on all of them.
type allRules struct{}

// Rules turns the HealthRules of the hub into the Assessor of components, and reports in their status whether they are
// followed.
type Rules struct {
	reader client.Reader
	writer client.Client
	clock  clock.PassiveClock

	// library has the rules used after the hub's; nil for none.
	library *health.Library

	// changed is called with the selectors of the objects to reassess. It must not block.
	changed func([]health.Selector)

	// following is nil until the rules have been read. Only Reconcile, which never runs concurrently, sets it.
	following atomic.Pointer[followed]

	// written has the last written status of each rule, for Reconcile only.
	written map[types.UID]writtenStatus
}

// writtenStatus is a written status, and the rule's version before. While the cache still shows that version, the
// status must not be written again: its time would differ.
type writtenStatus struct {
	over, reason, message string
	generation            int64
}

// followed is a set of rules with the Assessor that follows them.
type followed struct {
	assessor health.Assessor

	// compiled are the compiled rules, followed or not.
	compiled map[revision]*health.Rule

	// chosen are the rules followed for each selector: the oldest and, while a rule may leave objects undecided, the next.
	chosen map[health.Selector][]revision
}

// revision identifies the source of a compiled rule.
type revision struct {
	uid        types.UID
	generation int64
}

// New returns Rules that read from the manager's cache and write to the hub. changed is called once the rules have been
// read for the first time, and whenever the rule for some kinds changes.
func New(
	reader client.Reader, writer client.Client, clk clock.PassiveClock, library *health.Library, changed func([]health.Selector),
) *Rules {
	return &Rules{
		reader: reader, writer: writer, clock: clk, library: library, changed: changed, written: map[types.UID]writtenStatus{},
	}
}

// Assessor returns the current Assessor. It is false until the rules have been read: assessments without them would
// soon be reverted.
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
		LogConstructor: func(*allRules) logr.Logger {
			return mgr.GetLogger().WithValues("controller", healthRulesController)
		},
	})
	if err != nil {
		return fmt.Errorf("cannot create the controller %q: %w", healthRulesController, err)
	}
	all := func(context.Context, *fleetv1alpha1.HealthRule) []allRules { return []allRules{{}} }
	rules := source.TypedKind(mgr.GetCache(), &fleetv1alpha1.HealthRule{}, handler.TypedEnqueueRequestsFromMapFunc(all),
		predicate.TypedResourceVersionChangedPredicate[*fleetv1alpha1.HealthRule]{})
	if err := c.Watch(rules); err != nil {
		return fmt.Errorf("cannot watch HealthRules: %w", err)
	}
	// Without any rule there is no event, but the rules must still become known.
	if err := c.Watch(source.TypedFunc[allRules](enqueueAllRules)); err != nil {
		return fmt.Errorf("cannot start to read HealthRules: %w", err)
	}
	return nil
}

// Reconcile follows the current rules.
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
	kind := fleetv1alpha1.GroupVersion.WithKind("HealthRule")
	applied, err := apply.Status(ctx, h.writer, kind, rule, &status, fleetv1alpha1.FieldManager)
	if applied {
		h.written[rule.UID] = writing
	}
	return err
}
