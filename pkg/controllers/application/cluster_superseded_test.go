// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	appsv1alpha1 "github.com/masthead-dev/masthead/apis/apps/v1alpha1"
	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/applicationtest"
	"github.com/masthead-dev/masthead/internal/test/controllertest"
	"github.com/masthead-dev/masthead/pkg/controllers/application/record"
	"github.com/masthead-dev/masthead/pkg/controllers/application/workload"
)

// A running reconcile starts no write once the class sets ObserveOnly or withdraws its consent.
func TestALookThatIsSupersededWritesNoMore(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string

		// upTo is a part of the path of the request that has just been answered when the class changes.
		method, upTo string
		before, say  func(*fleetv1alpha1.ApplicationsSpec)
		change       func(*appsv1alpha1.Application)

		// writes is how many requests may write components or Pods.
		writes int
	}{
		"BeforeTheFirstAdoption": {
			reason: "The status was just written.", method: http.MethodPatch, upTo: "/applications/shop/status", say: observeOnly,
		},
		"BetweenAdoptions": {
			reason: "One was written already.", method: http.MethodPatch, upTo: "/configmaps/", say: observeOnly, writes: 1,
		},
		"BeforeThePod": {
			reason: "The existence of the Application was just checked.", method: http.MethodGet, upTo: "/applications/shop", say: observeOnly,
			change: func(app *appsv1alpha1.Application) {
				app.Spec.Components = nil
				app.Spec.HealthCheck = &appsv1alpha1.ApplicationHealthCheck{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "check", Image: "busybox", ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}},
				}}}}}
			},
		},
		"Consent": {
			reason: "What is discovered may not be owned any more.", method: http.MethodPatch, upTo: "/applications/shop/status",
			before: func(s *fleetv1alpha1.ApplicationsSpec) {
				s.DiscoveredOwnership = fleetv1alpha1.DiscoveredOwnershipAllowed
			},
			say: func(s *fleetv1alpha1.ApplicationsSpec) { s.DiscoveredOwnership = "" },
			change: func(app *appsv1alpha1.Application) {
				app.Spec.Components = nil
				app.Spec.Discover = &appsv1alpha1.Discovery{
					Sources: []appsv1alpha1.DiscoverySource{{PartOf: "shop"}}, Kinds: applicationtest.DiscoveredConfigMaps, Ownership: appsv1alpha1.DiscoveryOwnershipOwned,
				}
			},
		},
		"Disabled": {
			reason: "Applications are not managed any more.", method: http.MethodPatch, upTo: "/configmaps/", writes: 1,
			say: func(s *fleetv1alpha1.ApplicationsSpec) { s.Mode = fleetv1alpha1.ApplicationsModeDisabled },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.WaitForServed()
			f.WaitForIdle() // comesToSay reconciles the cluster, which the queue never does twice at the same time.
			if tc.before != nil {
				f.comesToSay(tc.before)
			}
			for _, cm := range []string{"a", "b", "c"} {
				f.CreateConfigMap(cm, "shop", func(cm *corev1.ConfigMap) { cm.Labels[appsv1alpha1.PartOfLabel] = "shop" })
			}
			reached, goOn := make(chan struct{}), make(chan struct{})
			once := sync.OnceFunc(func() {
				close(reached)
				<-goOn
			})
			f.Traffic.SetAfter(func(req *http.Request) {
				if req.Method == tc.method && strings.Contains(req.URL.Path, f.Namespace+tc.upTo) {
					once()
				}
			})
			release := sync.OnceFunc(func() { close(goOn) })
			t.Cleanup(release)
			before := f.Traffic.Count()
			f.CreateApplication("shop", applicationtest.Components(applicationtest.ConfigMaps, "a", "b", "c"), func(app *appsv1alpha1.Application) {
				if tc.change != nil {
					tc.change(app)
				}
			})
			f.Within("the request is answered", func() error {
				select {
				case <-reached:
					return nil
				default:
					return errors.New("it was not sent")
				}
			})
			f.comesToSay(tc.say)
			release()
			f.WaitForIdle()
			var got []string
			for _, request := range f.Traffic.Since(before, controllertest.Writes()...) {
				if strings.Contains(request, "/configmaps/") || strings.Contains(request, "/pods") {
					got = append(got, request)
				}
			}
			if len(got) != tc.writes {
				t.Errorf("%s Want %d writes, got %q", tc.reason, tc.writes, got)
			}
		})
	}
}

func observeOnly(s *fleetv1alpha1.ApplicationsSpec) {
	s.Mode = fleetv1alpha1.ApplicationsModeObserveOnly
}

// comesToSay changes the class, and waits until the change is in force.
func (f *fixture) comesToSay(change func(*fleetv1alpha1.ApplicationsSpec)) {
	f.T.Helper()
	var w *workload.Cluster
	f.Within("the cluster is engaged", func() error {
		var ok bool
		if w, ok = f.reconciler.workloads.Get(f.Cluster); !ok {
			return errors.New("it is not")
		}
		return nil
	})
	before := w.PolicyGeneration()
	f.EditClass(change)
	f.Within("the class counts", func() error {
		// A test may hold up a request. After two seconds the queue takes the cluster for one that hangs, and gives it no
		// second item, so that nothing would read the class before the request ends.
		if _, err := f.reconciler.reconcileCluster(f.T.Context(), w); err != nil {
			return err
		}
		if w.PolicyGeneration() == before {
			return errors.New("it does not yet")
		}
		return nil
	})
}

// looked returns an error unless an Application has been reconciled, and its status waits for nothing.
func (f *fixture) looked(name string) error {
	w, ok := f.reconciler.workloads.Get(f.Cluster)
	if !ok {
		return errors.New("the cluster is not engaged")
	}
	if at, waits, _ := w.LastLook(record.ApplicationKey{Namespace: f.Namespace, Name: name}); at.IsZero() || waits {
		return errors.New("it was not looked at, or waits")
	}
	return nil
}
