// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"testing"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
)

func TestRevocationIsFirst(t *testing.T) {
	const uuid = "b7e59a8a-b8de-4056-8188-02a4f43e3f73"
	notAllowed, notFound := condition.NewError(fleetv1alpha1.ReasonNamespaceNotAllowed, "x"), condition.NewError(fleetv1alpha1.ReasonClassNotFound, "x")
	ready := Enrolment{Ready: true, CredentialsVersion: "1"}
	with := func(change func(*Enrolment)) Enrolment {
		e := ready
		change(&e)
		return e
	}
	paused := with(func(e *Enrolment) { e.Paused = true })
	badID := with(func(e *Enrolment) { e.Identifier = uuid })
	notReady := with(func(e *Enrolment) { e.Ready, e.NotReadyReason = false, fleetv1alpha1.ReasonNotReady })
	noSecret := with(func(e *Enrolment) { e.CredentialsVersion = "" })
	cases := map[string]struct {
		reason  string
		byClass *condition.Error
		e       Enrolment
		want    string
	}{
		"Nothing":            {"Nothing holds it.", nil, ready, ""},
		"Revoked":            {"The class does not allow it.", notAllowed, ready, fleetv1alpha1.ReasonNamespaceNotAllowed},
		"RevokedNoSecret":    {"Taking the Secret's label away buys no grace period.", notAllowed, noSecret, fleetv1alpha1.ReasonNamespaceNotAllowed},
		"RevokedNotReady":    {"Nor does a Cluster that is not ready.", notAllowed, notReady, fleetv1alpha1.ReasonNamespaceNotAllowed},
		"RevokedPaused":      {"A pause does not keep a cluster from being offboarded.", notAllowed, paused, fleetv1alpha1.ReasonNamespaceNotAllowed},
		"RevokedIdentifier":  {"Nor does an identifier that is refused.", notAllowed, badID, fleetv1alpha1.ReasonNamespaceNotAllowed},
		"NoClassPaused":      {"A pause takes effect at once, a missing class does not.", notFound, paused, fleetv1alpha1.ReasonPaused},
		"NoClassIdentifier":  {"So does an identifier that is refused.", notFound, badID, fleetv1alpha1.ReasonBadIdentifier},
		"NoClass":            {"A missing class holds it.", notFound, ready, fleetv1alpha1.ReasonClassNotFound},
		"NoClassNoSecret":    {"Of what has a grace period, what the cluster lacks is said first.", notFound, noSecret, fleetv1alpha1.ReasonNoCredentials},
		"NotReadyIdentifier": {"What takes effect at once is not hidden by what does not.", nil, with(func(e *Enrolment) { e.Ready, e.Identifier = false, uuid }), fleetv1alpha1.ReasonBadIdentifier},
		"NotReady":           {"It is not ready.", nil, notReady, fleetv1alpha1.ReasonNotReady},
		"NoSecret":           {"There are no credentials.", nil, noSecret, fleetv1alpha1.ReasonNoCredentials},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			if why := firstHold(tc.byClass, &tc.e); why != nil {
				got = why.Reason
			}
			if got != tc.want {
				t.Errorf("%s\nwant %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
