// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/internal/test/agenttest"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/definition"
	"github.com/masthead-dev/masthead/pkg/controllers/agent/index"
	"github.com/masthead-dev/masthead/pkg/crossplane"
)

func TestForgedLabelOnADefinitionStartsNoWatchInTheHub(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.grace = time.Hour // A definition labelled like that, without objects, would be deleted.
	f.start()
	f.WaitForServed()
	var names []string
	for name, inHub := range map[string]bool{"theirs": true, "nowhere": false} {
		crd := (&agenttest.Fixture{Group: name + "." + f.Group}).ClaimCRD()
		crd.OwnerReferences = nil
		if inHub {
			f.Create(f.Hub, crd.DeepCopy())
		}
		crd.Labels = map[string]string{fleetv1alpha1.ManagedByLabel: index.ManagedByValue}
		f.Create(f.Workload, crd)
		names = append(names, crd.Name)
	}
	for _, name := range names {
		f.Within("the definition is looked at", func() error {
			if len(f.WorkloadRequests.Filter("customresourcedefinitions/"+name)) == 0 {
				return errors.New("not yet")
			}
			return nil
		})
	}
	f.Within("the one that the hub does not know is closed", func() error {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := f.Workload.Get(f.Ctx, client.ObjectKey{Name: "mysqlinstances.nowhere." + f.Group}, crd); err != nil {
			return err
		}
		if crd.Annotations[definition.WithdrawnAnnotation] == "" {
			return errors.New("it is open")
		}
		return nil
	})
	f.WaitForIdle()
	w, ok := f.agent.workloads.Get(f.Cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	local, hub := len(f.WorkloadRequests.Filter()), len(f.HubRequests.Filter())
	f.agent.hub.EnqueueDefinitions(w)
	f.WaitForIdle()
	if again := slices.Concat(f.WorkloadRequests.Filter()[local:], f.HubRequests.Filter()[hub:]); len(again) != 0 {
		t.Errorf("want them not to be read again while they are as they were, got %v", again)
	}
	for _, kind := range f.agent.hub.WatchedKinds() {
		if strings.HasSuffix(kind.Group, "."+f.Group) {
			t.Errorf("want no watch in the hub of %s", kind)
		}
	}

	// One that changes just as its claims become known is read again, and checked once more after that.
	req := index.DefinitionRequest(f.Cluster, "mysqlinstances.nowhere."+f.Group)
	before, following := w.Followed(req.Name)
	got, err := f.agent.definitions.Judge(f.Ctx, w, req, before, following, "another state")
	if err != nil || !following || got.RequeueAfter == 0 {
		t.Errorf("want it to be looked at again, got %+v (%v, followed %t)", got, err, following)
	}
}

// TestForgedDefinitionsHaveNoLastingCost: a cluster's owner creates, changes and removes definitions with our label,
// as often and under as many names as they like.
//
//nolint:tparallel // The cases share a fixture.
func TestForgedDefinitionsHaveNoLastingCost(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.grace = time.Hour
	f.start()
	f.WaitForServed()
	w, ok := f.agent.workloads.Get(f.Cluster)
	if !ok {
		t.Fatal("the cluster is not engaged")
	}
	for name, tc := range map[string]struct {
		reason string
		scope  apiextensionsv1.ResourceScope
		reads  int
	}{
		"claims": {reason: "One of the form of a claim's is compared with the hub's, which is read once.", scope: apiextensionsv1.NamespaceScoped, reads: 1},
		"other":  {reason: "For every other one the hub's does not matter.", scope: apiextensionsv1.ClusterScoped},
	} {
		t.Run(name, func(t *testing.T) {
			crd := (&agenttest.Fixture{Group: name + "." + f.Group}).ClaimCRD()
			crd.OwnerReferences = nil
			inHub := crd.DeepCopy()
			f.Create(f.Hub, inHub)
			// Until then the API server writes its status, and each write is another state to read.
			f.Within("the hub's is as it stays, and the watch has it", func() error {
				if err := f.Hub.Get(f.Ctx, client.ObjectKeyFromObject(inHub), inHub); err != nil {
					return err
				}
				meta, err := f.agent.hub.Watcher.Get(crossplane.HubCRDKind, client.ObjectKeyFromObject(inHub))
				if err != nil || !apihelpers.IsCRDConditionTrue(inHub, apiextensionsv1.Established) || meta.GetResourceVersion() != inHub.ResourceVersion {
					return fmt.Errorf("status %v, the watch has %v (%w)", inHub.Status.Conditions, meta, err)
				}
				return nil
			})
			crd.Spec.Scope = tc.scope
			crd.Labels = map[string]string{fleetv1alpha1.ManagedByLabel: index.ManagedByValue}
			f.Create(f.Workload, crd)
			judged := func() (states string, ok bool) {
				meta, err := w.Watcher.Get(index.OwnedCRDKind, client.ObjectKey{Name: crd.Name})
				if err != nil {
					return "", false
				}
				states, known := definition.Judgement(f.agent.hub, meta, crd.Name)
				return states, known && states != "" && w.Definition(crd.Name).Judged == states
			}
			var states string
			for n := range 3 {
				f.Edit(f.Workload, crd, func() { crd.Annotations = map[string]string{"example.org/change": strconv.Itoa(n)} })
				f.Within("it is judged as it is now", func() error {
					meta, err := w.Watcher.Get(index.OwnedCRDKind, client.ObjectKey{Name: crd.Name})
					if err != nil || meta.GetAnnotations()["example.org/change"] != strconv.Itoa(n) {
						return fmt.Errorf("the watch has %v (%w)", meta, err)
					}
					if states, ok = judged(); !ok {
						return errors.New("it is not")
					}
					return nil
				})
			}
			if got := f.HubRequests.Filter(http.MethodGet, "customresourcedefinitions/"+crd.Name); len(got) != tc.reads {
				t.Errorf("%s got %d reads of the hub", tc.reason, len(got))
			}
			if !w.Definition(crd.Name).Unoffered {
				t.Error("want a definition that is not offered to be noted as that")
			}
			f.Undefine(f.Workload, crd)
			f.Within("nothing is noted of it when it is gone", func() error {
				if d := w.Definition(crd.Name); d.Unoffered || states != "" && d.Judged == states {
					return fmt.Errorf("it is still known: %+v", d)
				}
				return nil
			})
		})
	}
}

// TestDefinitionsOfOtherControllersAreNotRead: copies of the hub's definitions bear our label and can be large.
func TestDefinitionsOfOtherControllersAreNotRead(t *testing.T) {
	t.Parallel()
	f := prepareFixture(t)
	f.grace = time.Hour
	f.start()
	f.WaitForServed()
	names := map[bool]string{}
	for _, mirrored := range []bool{true, false} {
		// Anybody can set the annotation alone.
		crd := (&agenttest.Fixture{Group: fmt.Sprintf("mirrored-%t.%s", mirrored, f.Group)}).ClaimCRD()
		if mirrored {
			crd = (&agenttest.Fixture{Group: crossplane.XRDKind.Group}).ClaimCRD()
		}
		crd.OwnerReferences = nil
		crd.Labels = map[string]string{fleetv1alpha1.ManagedByLabel: index.ManagedByValue}
		crd.Annotations = map[string]string{fleetv1alpha1.MirroredAnnotation: "x"}
		f.Create(f.Workload, crd)
		t.Cleanup(func() {
			if err := f.Workload.Delete(context.Background(), crd); err != nil {
				t.Errorf("cannot delete a definition: %v", err)
			}
		})
		names[mirrored] = crd.Name
	}
	f.Within("the one that could be of claims is looked at", func() error {
		if len(f.WorkloadRequests.Filter("customresourcedefinitions/"+names[false])) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	f.WaitForIdle()
	if got := slices.Concat(f.WorkloadRequests.Filter(names[true]), f.HubRequests.Filter(names[true])); len(got) != 0 {
		t.Errorf("want the copy not to be read, got %v", got)
	}
}

func TestClaimsGoWhenTheHubDoesNotSayWhatItOffers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	claim := f.CreateClaim("db")
	f.WaitForPushed("db")
	f.WaitForSynced("db", fleetv1alpha1.ReasonSynced)
	f.stopAgent()
	f.HubUser = f.Class
	f.Create(f.Hub, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", "events.k8s.io", f.Group, fleetv1alpha1.GroupVersion.Group, apiextensionsv1.GroupName}, Resources: []string{"*"}, Verbs: []string{"*"}},
		},
	})
	f.Create(f.Hub, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Class},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.Class},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: f.HubUser}},
	})
	f.restart()
	if err := f.Workload.Delete(f.Ctx, claim); err != nil {
		t.Fatal(err)
	}
	f.WaitForGone(f.Workload, f.Namespace, "db")
	f.WaitForGone(f.Hub, f.Target, "db")
}
