// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package discoverytest

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
)

// Fixture is a hub and a workload cluster with the objects of one test.
type Fixture struct {
	controllertest.Case

	Hub, Workload  client.Client
	workloadConfig *rest.Config
	Traffic        controllertest.Traffic
	Cluster        mcr.ClusterName
	Class          *fleetv1alpha1.EnrollmentClass
	Group          string

	// User and UserGroups are Masthead's in the workload cluster.
	User       string
	UserGroups []string

	// Owner is the hub as the owner of what is in the cluster.
	Owner hubidentity.Owner
}

var fixtures atomic.Int32 //nolint:gochecknoglobals // Numbers the fixtures.

// New returns a fixture with a class in the hub, which the options change before it is created.
func New(t *testing.T, hub, workload *rest.Config, options ...func(*fleetv1alpha1.EnrollmentClass)) *Fixture {
	t.Helper()
	n := fixtures.Add(1)
	f := &Fixture{
		Case:           controllertest.Case{T: t, Ctx: context.WithoutCancel(t.Context()), Patience: time.Minute},
		Hub:            controllertest.NewClient(t, hub, controllertest.Scheme()),
		Workload:       controllertest.NewClient(t, workload, controllertest.Scheme()),
		workloadConfig: workload,
		Cluster:        mcr.ClusterName(fmt.Sprintf("capi/fleet/w%d", n)),
		Group:          fmt.Sprintf("db%d.acmeco.org", n),
		User:           mastheadUser, UserGroups: []string{"system:masters"},
		Owner: Owner,
	}
	f.Class = &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", n)},
		Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{
			Mode: fleetv1alpha1.AgentModeReadWrite, APIGroups: []string{f.Group}, DefaultTargetNamespace: "bar",
		}, Applications: fleetv1alpha1.ApplicationsSpec{Mode: fleetv1alpha1.ApplicationsModeDisabled}},
	}
	for _, o := range options {
		o(f.Class)
	}
	f.Create(f.Hub, f.Class)
	return f
}

// ClientAsMasthead is a client whose writes the policy allows: they stand for those of a time without the policy.
func (f *Fixture) ClientAsMasthead() client.Client {
	f.T.Helper()
	cfg := rest.CopyConfig(f.workloadConfig)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: mastheadUser, Groups: []string{"system:masters"}}
	return controllertest.NewClient(f.T, cfg, controllertest.Scheme())
}

// WaitForEvent waits for an event on the enrolled object.
func (f *Fixture) WaitForEvent(reason string) {
	f.T.Helper()
	f.Case.WaitForEvent(f.Hub, f.Class.Name, reason)
}

// Owner is the hub that owns what is in the cluster.
var Owner = hubidentity.Owner{ID: "hub-a"} //nolint:gochecknoglobals // A constant.

// mastheadUser is Masthead's username in the test workload cluster. The quotes are there to be quoted.
const mastheadUser = `masthead's "own" user`

// EditClass changes what the class says about agents.
func (f *Fixture) EditClass(change func(*fleetv1alpha1.AgentSpec)) {
	f.T.Helper()
	f.Edit(f.Hub, f.Class, func() { change(&f.Class.Spec.Agent) })
}

// WaitForIdle waits until the workload cluster receives no more requests.
func (f *Fixture) WaitForIdle() {
	f.T.Helper()
	f.AtRest(100, f.Traffic.Progress)
}
