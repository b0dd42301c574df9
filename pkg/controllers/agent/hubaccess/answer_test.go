// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package hubaccess

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/apierror"
	"github.com/masthead-dev/masthead/pkg/condition"
)

func TestLackingNamesTheUserAndTheRight(t *testing.T) {
	const sa, secret = `the ServiceAccount "agent1" in the namespace "bar"`, `the user of the Secret "creds" in the namespace "foo" of this cluster`
	forbidden := func(text string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "db.org", Resource: "dbs"}, "db", errors.New(text))
	}
	said := forbidden(`User "system:serviceaccount:bar:agent1" cannot create resource "dbs" in API group "db.org" in the namespace "bar"`)
	for name, tc := range map[string]struct {
		reason       string
		err          error
		want, reasoN string
	}{
		"Manager": {
			"The manager's name in the hub is of no interest to a user.", said,
			`Masthead lacks the right to patch dbs.db.org in the namespace "bar" of the hub.`, fleetv1alpha1.ReasonHubForbidden,
		},
		"ServiceAccount": {
			"The hub's words name the verb that is missing of those that an apply takes.", fmt.Errorf("cannot: %w", RefusalError{Answer: said, Identity: sa}),
			`The user "system:serviceaccount:bar:agent1" of the hub, which is the ServiceAccount "agent1" in the namespace "bar", lacks the right ` +
				`to create dbs.db.org in the namespace "bar" of the hub.`, fleetv1alpha1.ReasonHubForbidden,
		},
		"Secret": {
			"The message names the Secret for its author.", RefusalError{Answer: said, Identity: secret},
			`The user "system:serviceaccount:bar:agent1" of the hub, which is the user of the Secret "creds" in the namespace "foo" of this cluster, ` +
				`lacks the right to create dbs.db.org in the namespace "bar" of the hub.`, fleetv1alpha1.ReasonHubForbidden,
		},
		"Impersonation": {
			"It is the manager who lacks a right then.",
			RefusalError{Answer: forbidden(`User "manager" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "bar"`), Identity: sa},
			`Masthead lacks the right to impersonate the ServiceAccount "agent1" in the namespace "bar" of the hub.`, fleetv1alpha1.ReasonImpersonationForbidden,
		},
		"ConstrainedImpersonation": {
			"Newer API servers say it like this.",
			RefusalError{Answer: forbidden(`User "manager" cannot impersonate-on:serviceaccount:patch resource "dbs" in API group "db.org" in the namespace "bar"`), Identity: sa},
			`Masthead lacks the right to impersonate the ServiceAccount "agent1" in the namespace "bar" of the hub.`, fleetv1alpha1.ReasonImpersonationForbidden,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := HubProblem(tc.err, "patch", "dbs.db.org", "bar")
			if p == nil || p.Message != tc.want || p.Reason != tc.reasoN {
				t.Errorf("%s want %s %q, got %v", tc.reason, tc.reasoN, tc.want, p)
			}
		})
	}
}

func TestHubProblem(t *testing.T) {
	resource := schema.GroupResource{Group: "db.acmeco.org", Resource: "dbs"}
	unserved := apierrors.NewGenericServerResponse(404, "PATCH", resource, "db", "404 page not found", 0, true)
	terminating := apierrors.NewForbidden(resource, "db", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = append(terminating.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NamespaceTerminating"})
	for name, tc := range map[string]struct {
		reason  string
		err     error
		want    string
		message string
	}{
		"MissingNamespace": {
			reason: "The namespace is named.", err: apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "bar"),
			want: fleetv1alpha1.ReasonTargetNamespaceMissing, message: `The namespace "bar" does not exist in the hub.`,
		},
		"TerminatingNamespace": {reason: "So is one that is going.", err: terminating, want: fleetv1alpha1.ReasonTargetNamespaceMissing, message: `The namespace "bar" of the hub is being deleted.`},
		"MissingRight": {
			reason: "The right is named, without the name of our account.",
			err:    apierrors.NewForbidden(resource, "db", errors.New(`User "system:serviceaccount:x:y" cannot create resource "dbs" in API group`)),
			want:   fleetv1alpha1.ReasonHubForbidden, message: `Masthead lacks the right to create dbs.db.acmeco.org in the namespace "bar" of the hub.`,
		},
		"AdmissionRefuses": {
			reason: "A policy's answer is the user's to read.", err: apierrors.NewForbidden(resource, "db", errors.New("too large")),
			want: fleetv1alpha1.ReasonRejected, message: `The hub rejected the claim: dbs.db.acmeco.org "db" is forbidden: too large`,
		},
		"Unserved": {reason: "A kind that is not served differs from an object that does not exist.", err: unserved, want: fleetv1alpha1.ReasonKindNotServed, message: "The hub does not serve dbs.db.acmeco.org now."},
		"Conflict": {reason: "A conflict is retried.", err: apierrors.NewConflict(resource, "db", errors.New("x"))},
		"Busy":     {reason: "A hub that is busy is tried again.", err: apierrors.NewTooManyRequestsError("x")},
		"Network":  {reason: "So is one that does not answer.", err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			got := HubProblem(tc.err, "create", resource.String(), "bar")
			want := &condition.Error{Reason: tc.want, Message: tc.message}
			if tc.want == "" {
				want = nil
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(condition.Error{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
	if apierror.IsMissingObject(unserved) || !apierror.IsMissingObject(apierrors.NewNotFound(resource, "db")) {
		t.Error("want a missing object to be distinguished from a missing kind")
	}
}

// TestHubUnavailableTellsNothingOfTheHub: the answers are those of Kubernetes 1.36.
func TestHubUnavailableTellsNothingOfTheHub(t *testing.T) {
	said := map[string]bool{}
	for _, text := range []string{
		`failed calling webhook "check.acme.org": failed to call webhook: Post "https://check.policies.svc:443/v?timeout=10s": dial tcp 10.96.3.1:443: connect: connection refused`,
		`failed calling webhook "check.acme.org": failed to call webhook: Post "https://check.policies.svc:443/v?timeout=10s": read tcp 10.0.0.7:41822->10.96.3.1:443: i/o timeout`,
		`failed calling webhook "check.acme.org": failed to call webhook: Post "https://check.policies.svc:443/v?timeout=10s": read tcp 10.0.0.7:41830->10.96.3.1:443: i/o timeout`,
		`etcdserver: request timed out`,
	} {
		for _, err := range []error{
			apierrors.NewInternalError(errors.New(text)), apierrors.NewServiceUnavailable(text), apierrors.NewTimeoutError(text, 1),
			apierrors.NewServerTimeout(schema.GroupResource{Resource: "dbs"}, "patch", 1),
		} {
			p, ok := errors.AsType[*condition.Error](HubUnavailable(fmt.Errorf("cannot: %w", err)))
			if !ok || p.Reason != fleetv1alpha1.ReasonHubUnavailable || !p.Unknown {
				t.Fatalf("want %v to be the hub's failure, got %v", err, p)
			}
			said[p.Message] = true
		}
	}
	if len(said) != 1 {
		t.Errorf("want one message, which cannot flap and names nothing, got %v", said)
	}
	if got := reasonOf(HubUnavailable(errors.New("dial tcp 10.0.0.1:443: i/o timeout"))); got != "" {
		t.Errorf("want no answer not to be one, got %v", got)
	}
}

func TestErrorsThatAreJoined(t *testing.T) {
	resource := schema.GroupResource{Resource: "dbs"}
	conflict, down := apierrors.NewConflict(resource, "db", errors.New("x")), apierrors.NewInternalError(errors.New("x"))
	unknown := apierrors.NewUnauthorized("x")
	refused := func(err error) error { return fmt.Errorf("cannot: %w", RefusalError{Answer: err}) }
	for name, tc := range map[string]struct {
		reason                 string
		err                    error
		unauthorized, conflict bool
	}{
		"None":               {reason: "There is no error.", err: nil},
		"Refused":            {reason: "The hub does not know the user.", err: refused(unknown), unauthorized: true},
		"RefusedAfterOthers": {reason: "It is not the first error that counts.", err: errors.Join(down, refused(down), refused(unknown)), unauthorized: true},
		"WorkloadsUser":      {reason: "It is the workload cluster that does not know the manager.", err: errors.Join(unknown, refused(down))},
		"Conflict":           {reason: "It passes.", err: fmt.Errorf("cannot: %w", conflict), conflict: true},
		"Conflicts":          {reason: "They pass.", err: errors.Join(conflict, errors.Join(nil, refused(conflict))), conflict: true},
		"ConflictAndFailure": {reason: "The other does not.", err: errors.Join(conflict, down)},
		"ConflictAndSilence": {reason: "Nor does one without an answer.", err: fmt.Errorf("cannot: %w", errors.Join(conflict, errors.New("EOF")))},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsUnauthorized(tc.err); got != tc.unauthorized {
				t.Errorf("%s want unauthorized %v, got %v", tc.reason, tc.unauthorized, got)
			}
			if got := IsConflict(tc.err); got != tc.conflict {
				t.Errorf("%s want a conflict: %v, got %v", tc.reason, tc.conflict, got)
			}
		})
	}
}

func TestWorkloadProblem(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Right":     {reason: "A right can be granted.", err: apierrors.NewForbidden(resource, "a", errors.New(`User "x" cannot create resource "secrets" in API group ""`)), want: fleetv1alpha1.ReasonWorkloadForbidden},
		"Policy":    {reason: "A policy says no every time.", err: apierrors.NewForbidden(resource, "a", errors.New("denied")), want: fleetv1alpha1.ReasonSecretRejected},
		"Immutable": {reason: "An immutable Secret stays immutable.", err: apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "a", nil), want: fleetv1alpha1.ReasonSecretRejected},
		"Namespace": {reason: "A namespace that goes does not come back soon.", err: apierrors.NewForbidden(resource, "a", errors.New("because it is being terminated")), want: fleetv1alpha1.ReasonSecretRejected},
		"Busy":      {reason: "What passes is retried.", err: apierrors.NewTooManyRequests("later", 1)},
		"Conflict":  {reason: "So is what another client changed.", err: apierrors.NewConflict(resource, "a", errors.New("changed"))},
		"Broken":    {reason: "And what did not arrive.", err: errors.New("connection refused")},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if p := WorkloadProblem(fmt.Errorf("cannot: %w", tc.err), "write the Secret", fleetv1alpha1.ReasonSecretRejected); p != nil {
				got = p.Reason
			}
			if got != tc.want {
				t.Errorf("%s want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
