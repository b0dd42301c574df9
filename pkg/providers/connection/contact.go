// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/providers/connection/probe"
	"github.com/masthead-dev/masthead/pkg/providers/credentials"
)

// dialer provides what contacting a cluster needs: a place, its credentials, and a measured probe.
type dialer struct {
	o       *Options
	sources map[string]Source
	lanes   *lanes
	metrics *metrics
}

// errBusy means that no place to contact a cluster is free. The enrolment is requeued when one is.
var errBusy = errors.New("too many clusters are being contacted")

// enter requests a place to contact a cluster; errBusy if none is free.
func (c *dialer) enter(r *record, l lane) (leave func(), err error) {
	leave, ok := c.lanes[l].Acquire(r.key, r.key.Namespace)
	r.waits[l] = !ok
	if !ok {
		return nil, errBusy
	}
	return leave, nil
}

// readCredentials reads the credentials from their source.
func (c *dialer) readCredentials(ctx context.Context, r *record) (*credentials.Credentials, *condition.Error) {
	ctx, cancel := context.WithTimeout(ctx, c.o.RequestTimeout)
	defer cancel()
	raw, err := c.sources[r.key.Source].Kubeconfig(ctx, &r.enrolment)
	var creds *credentials.Credentials
	if err == nil {
		creds, err = credentials.Parse(raw.Data, c.o.Credentials)
	}
	var invalid *credentials.InvalidError
	var problem *condition.Error
	switch {
	case err == nil:
		r.readFrom = raw.SecretKey
		return creds, nil
	case errors.As(err, &problem):
		return nil, problem
	case errors.Is(err, ErrNoCredentials):
		return nil, condition.NewError(fleetv1alpha1.ReasonNoCredentials, "There is no "+r.enrolment.Secret)
	case errors.As(err, &invalid) && invalid.Reason == credentials.ReasonDenied:
		return nil, condition.NewError(fleetv1alpha1.ReasonEndpointDenied, invalid.Message)
	case errors.As(err, &invalid):
		return nil, condition.NewError(fleetv1alpha1.ReasonBadKubeconfig, invalid.Message)
	default:
		log.FromContext(ctx).Error(err, "Cannot read the kubeconfig")
		return nil, condition.NewError(fleetv1alpha1.ReasonNoCredentials,
			"The Secret with the cluster's kubeconfig cannot be read from the hub")
	}
}

// probe probes the cluster and records the duration.
func (c *dialer) probe(ctx context.Context, pr probe.Prober, token string) (metav1.ConditionStatus, *condition.Error) {
	start := c.o.Clock.Now()
	health, why := pr.Ready(ctx, token)
	c.metrics.duration.Observe(c.o.Clock.Since(start).Seconds())
	return health, why
}
