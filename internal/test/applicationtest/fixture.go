// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package applicationtest

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/providers/connection"
)

// Fixture is a hub and a workload cluster with the objects of one test.
type Fixture struct {
	controllertest.Case

	Hub, Workload client.Client
	Traffic       controllertest.Traffic
	Cluster       mcr.ClusterName
	Class         *fleetv1alpha1.EnrollmentClass
	Namespace     string

	// User is the controller's username in the workload cluster; empty for an administrator.
	User string
}

var fixtures atomic.Int32 //nolint:gochecknoglobals // Numbers the fixtures.

// New returns a fixture with a class in the hub and a namespace in the workload cluster.
func New(t *testing.T, hub, workload *rest.Config) *Fixture {
	t.Helper()
	n := fixtures.Add(1)
	f := &Fixture{
		Case:      controllertest.Case{T: t, Ctx: context.WithoutCancel(t.Context()), Patience: time.Minute},
		Hub:       controllertest.NewClient(t, hub, controllertest.Scheme()),
		Workload:  controllertest.NewClient(t, workload, controllertest.Scheme()),
		Cluster:   mcr.ClusterName(fmt.Sprintf("capi/fleet/w%d", n)),
		Namespace: fmt.Sprintf("shop-%d", n),
	}
	f.Class = &fleetv1alpha1.EnrollmentClass{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("class-%d", n)},
		Spec: fleetv1alpha1.EnrollmentClassSpec{Agent: fleetv1alpha1.AgentSpec{
			Mode: fleetv1alpha1.AgentModeDisabled, DefaultTargetNamespace: "bar",
		}},
	}
	f.Create(f.Hub, f.Class)
	if err := f.Hub.Create(f.Ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet"}}); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	f.Create(f.Workload, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.Namespace}})
	return f
}

// EditClass changes the cluster's class with respect to Applications.
func (f *Fixture) EditClass(change func(*fleetv1alpha1.ApplicationsSpec)) {
	f.T.Helper()
	f.Edit(f.Hub, f.Class, func() { change(&f.Class.Spec.Applications) })
}

// Enrolment is the cluster as it is in the fleet, in a given state.
func (f *Fixture) Enrolment(state connection.State) connection.Cluster {
	key, _ := connection.ParseClusterName(f.Cluster)
	return connection.Cluster{
		Name: f.Cluster, State: state, Reason: string(state),
		Enrolment: connection.Enrolment{Class: f.Class.Name, Object: connection.ObjectReference{
			GroupVersionKind: schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: "Cluster"},
			Namespace:        key.Namespace, Name: key.Name, UID: types.UID("uid-of-" + key.Name),
		}},
	}
}

// WaitForIdle waits until the workload cluster receives no more requests.
func (f *Fixture) WaitForIdle() {
	f.T.Helper()
	f.AtRest(100, f.Traffic.Progress)
}

// WaitForServed waits until the cluster has the definition of Applications.
func (f *Fixture) WaitForServed() {
	f.T.Helper()
	f.Within("Applications are served", func() error {
		return f.Workload.List(f.Ctx, &appsv1alpha1.ApplicationList{}, client.InNamespace(f.Namespace))
	})
}

// SetMode sets the mode of Applications in the class.
func (f *Fixture) SetMode(mode fleetv1alpha1.ApplicationsMode) {
	f.T.Helper()
	f.EditClass(func(spec *fleetv1alpha1.ApplicationsSpec) { spec.Mode = mode })
}

// AnswerFor makes the cluster answer all requests for a path with a code.
func (f *Fixture) AnswerFor(path string, code int, status string) {
	f.Traffic.SetAnswer(func(req *http.Request) *http.Response {
		if req.URL.Path != path {
			return nil
		}
		return controllertest.JSONAnswer(req, code, `{"kind":"Status","apiVersion":"v1","status":"Failure",`+status+`}`)
	})
}
