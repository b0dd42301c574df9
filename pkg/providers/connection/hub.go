// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// A workload cluster belongs to one hub, which the marker in it names; see package hubidentity. The marker is claimed
// before a cluster is engaged with a class that has something written there, and else before the first write. Until
// then the transport lets no write through. It is looked at again every Options.HubInterval, and whenever a cluster
// comes back.

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	markerPath      = definitionsPath + "/" + fleetv1alpha1.HubMarkerName

	// maxClaimAttempts is how often a marker is read that somebody else changes while it is written.
	maxClaimAttempts = 3
)

// holdHub finds out whether a cluster belongs to this hub, and claims it if that is wanted and nobody else has it. It
// returns whether the cluster is held, or why it cannot be.
func (p *Provider) holdHub(ctx context.Context, r *record, pr prober, token string, claim bool) (bool, *failure) {
	takeOver, err := hubidentity.Parse(r.enrolment.TakeOverFrom)
	if err != nil {
		takeOver = "" // No hub has that identity.
	}
	for range maxClaimAttempts {
		have, why := pr.marker(ctx, token)
		if why != nil {
			return false, why
		}
		verdict, want := hubidentity.Judge(markerIn(have), p.o.Hub, takeOver)
		switch verdict {
		case hubidentity.VerdictHeld:
			r.hub = want.Owner()
			return true, nil
		case hubidentity.VerdictOther:
			return false, otherHub(hubidentity.MarkerOf(have))
		case hubidentity.VerdictFree:
		}
		if !claim {
			r.hub = hubidentity.Owner{ID: p.o.Hub.ID}
			return false, nil
		}
		written, why := pr.writeMarker(ctx, token, want, have)
		if why != nil {
			return false, why
		}
		if written {
			r.hub = want.Owner()
			return true, nil
		}
	}
	return false, &failure{ReasonProbeFailed, "Other hubs claim the cluster at the same time"}
}

func markerIn(have *metav1.ObjectMeta) *hubidentity.Marker {
	if have == nil {
		return nil
	}
	m := hubidentity.MarkerOf(have)
	return &m
}

// otherHub is why a cluster that belongs to another hub is not connected.
func otherHub(m hubidentity.Marker) *failure {
	if m.Foreign {
		return &failure{ReasonOtherHub, fmt.Sprintf(
			"The cluster belongs to another hub, whose identity in the label %s of the CustomResourceDefinition %q cannot be read",
			fleetv1alpha1.HubLabel, fleetv1alpha1.HubMarkerName)}
	}
	return &failure{ReasonOtherHub, fmt.Sprintf(
		"The cluster belongs to the hub %s. It is connected when that hub releases it, or when the annotation %s of the enrolled object consents with %q",
		m.Holder, fleetv1alpha1.TakeOverFromAnnotation, m.Holder.ID)}
}

// hubOf finds out for a new connection whether the cluster belongs to this hub, and sets what the connection lets
// through.
func (p *Provider) hubOf(ctx context.Context, r *record, pr prober, token string) *failure {
	if p.o.Hub.ID == "" {
		return nil
	}
	writes, err := p.classWrites(ctx, r.enrolment.Class)
	if err != nil {
		return &failure{ReasonConnecting, "The EnrollmentClass cannot be read from the hub"}
	}
	held, why := p.holdHub(ctx, r, pr, token, writes)
	r.hubAt = p.o.Clock.Now()
	if why != nil && (writes || why.noAnswer()) {
		return why
	}
	pr.transport.HoldWrites(!held)
	return nil
}

// noAnswer is whether the cluster did not say if this hub may have it.
func (f *failure) noAnswer() bool { return f.reason != ReasonOtherHub && f.reason != ReasonForbidden }

// verifyHub finds out whether a cluster that is connected belongs to this hub still.
func (p *Provider) verifyHub(ctx context.Context, r *record) *failure {
	if p.o.Hub.ID == "" {
		return nil
	}
	t := r.conn.transport
	held, wanted := !t.Unclaimed(), t.TakeClaimWanted()
	writes, err := p.classWrites(ctx, r.enrolment.Class)
	claim := held || wanted || writes || err != nil
	due := r.state == StateDegraded || wanted || !held && writes || p.o.Clock.Since(r.hubAt) >= p.o.HubInterval
	if !due {
		return nil
	}
	r.hubAt = p.o.Clock.Now()
	now, why := p.holdHub(ctx, r, r.conn.prober, r.conn.creds.Token(), claim)
	if why != nil && why.noAnswer() {
		return why
	}
	t.HoldWrites(!now)
	if why != nil && (held || writes) {
		return why
	}
	return nil
}

// releaseHub gives a cluster up that leaves, so that another hub can have it.
func (p *Provider) releaseHub(ctx context.Context, conn *connected, token string) *failure {
	if p.o.Hub.ID == "" || conn.transport.Unclaimed() {
		return nil
	}
	conn.transport.HoldWrites(true)
	for range maxClaimAttempts {
		have, why := conn.prober.marker(ctx, token)
		if why != nil || have == nil {
			return why
		}
		m := hubidentity.MarkerOf(have)
		if m.Holder.ID != p.o.Hub.ID {
			return nil
		}
		written, why := conn.prober.writeMarker(ctx, token, hubidentity.ReleasedMarker(m), have)
		if why != nil || written {
			return why
		}
	}
	return &failure{ReasonProbeFailed, "Somebody else changes it at the same time"}
}

// classWrites is whether something is written to the clusters of a class. What is not known may write.
func (p *Provider) classWrites(ctx context.Context, name string) (bool, error) {
	if !p.o.RequireClass {
		return true, nil
	}
	class, err := Class(ctx, p.hub.GetClient(), name)
	if err != nil || class == nil {
		return true, err
	}
	return class.Spec.Agent.Mode != fleetv1alpha1.AgentModeDisabled ||
		class.Spec.Applications.Mode != fleetv1alpha1.ApplicationsModeDisabled ||
		class.Spec.References.Mode == fleetv1alpha1.ReferencesModeEnabled, nil
}

// marker reads the metadata of the marker; nil if there is none.
func (p prober) marker(ctx context.Context, token string) (*metav1.ObjectMeta, *failure) {
	code, body, err := p.exchange(ctx, http.MethodGet, markerPath, token, nil)
	switch {
	case err != nil:
		return nil, p.explain(err)
	case code == http.StatusNotFound:
		return nil, nil
	case code != http.StatusOK:
		return nil, markerRefused("get", code)
	}
	obj := metav1.PartialObjectMetadata{}
	if json.Unmarshal(body, &obj) != nil || obj.Name != fleetv1alpha1.HubMarkerName {
		return nil, &failure{ReasonProbeFailed, fmt.Sprintf("The API server's answer to a request for the CustomResourceDefinition %q is not one",
			fleetv1alpha1.HubMarkerName)}
	}
	return &obj.ObjectMeta, nil
}

// writeMarker creates the marker, or replaces the one that was read. It returns whether it did, which it has not if
// somebody else was faster.
func (p prober) writeMarker(ctx context.Context, token string, m hubidentity.Marker, have *metav1.ObjectMeta) (bool, *failure) {
	body, err := json.Marshal(m.Object(have))
	if err != nil {
		return false, &failure{ReasonProbeFailed, "The marker of the hub cannot be encoded"}
	}
	method, path, verb := http.MethodPost, definitionsPath, "create"
	if have != nil {
		method, path, verb = http.MethodPut, markerPath, "update"
	}
	code, _, err := p.exchange(ctx, method, path, token, body)
	switch {
	case err != nil:
		return false, p.explain(err)
	case code == http.StatusConflict, code == http.StatusNotFound:
		return false, nil
	case code != http.StatusOK && code != http.StatusCreated:
		return false, markerRefused(verb, code)
	}
	return true, nil
}

// markerRefused is why a cluster is not connected that does not let the marker be read or written.
func markerRefused(verb string, code int) *failure {
	switch code {
	case http.StatusUnauthorized:
		return &failure{ReasonUnauthorized, "The API server does not accept the credentials"}
	case http.StatusForbidden:
		return &failure{ReasonForbidden, fmt.Sprintf(
			"The API server does not let Masthead %s the CustomResourceDefinition %q, which says which hub the cluster belongs to",
			verb, fleetv1alpha1.HubMarkerName)}
	}
	return &failure{ReasonProbeFailed, fmt.Sprintf("The API server answered %d when Masthead tried to %s the CustomResourceDefinition %q",
		code, verb, fleetv1alpha1.HubMarkerName)}
}

// exchange sends a request about the marker. Of the answer, as much is read as of one to a probe.
func (p prober) exchange(ctx context.Context, method, path, token string, body []byte) (int, []byte, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	u := *p.transport.Server()
	u.Path += path
	req, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	// Other forms of the answer are large, and of no use.
	req.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := p.transport.Ask(req, token)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // Nothing is lost with it.
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxProbeBody))
	if err != nil {
		return 0, nil, err
	}
	return resp.StatusCode, answer, nil
}
