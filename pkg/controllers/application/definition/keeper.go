// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/multicluster"
	"github.com/masthead-dev/masthead/pkg/readonlypolicy"
)

// Reasons for which a cluster has no Applications, or not those of this manager, in events and in the ClusterProfile's
// condition KindsServed.
const (
	// ReasonDefinitionForeign: the cluster has a definition of Applications which Masthead did not put there.
	ReasonDefinitionForeign = "ForeignDefinition"

	// ReasonDefinitionRejected: the cluster's API server refused the definition; the message says why.
	ReasonDefinitionRejected = "DefinitionRejected"

	// ReasonDefinitionForbidden: the cluster refused the definition with 403: a right is missing, or an admission policy
	// forbids it.
	ReasonDefinitionForbidden = "DefinitionForbidden"

	// ReasonDefinitionNewer: a newer manager has put its definition there. It is used as it is, and nothing is missing.
	ReasonDefinitionNewer = "DefinitionNewer"
)

// Name is the name of the CustomResourceDefinition of Applications.
const Name = "applications.apps.masthead.dev"

// definitionSoon is when a cluster is looked at again of whose definition the watch has not reported yet what there is.
const definitionSoon = time.Second

// Resource is what definitions are asked for as.
var Resource = schema.GroupVersionResource{ //nolint:gochecknoglobals // A constant.
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// definitions is what the keeper of definitions does in a cluster. dynamic.ResourceInterface implements it.
type definitions interface {
	Get(ctx context.Context, name string, o metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error)
	Create(ctx context.Context, obj *unstructured.Unstructured, o metav1.CreateOptions, subresources ...string) (*unstructured.Unstructured, error)
	Update(ctx context.Context, obj *unstructured.Unstructured, o metav1.UpdateOptions, subresources ...string) (*unstructured.Unstructured, error)
}

// State is what came of a look at the definition in a cluster.
type State struct {
	// Served is whether the cluster has Applications.
	Served bool

	// Problem says why it has none.
	Problem *condition.Problem

	// Notice says that the definition is not quite this manager's, although the cluster has Applications.
	Notice *condition.Problem

	// Wrote is "create" or "update" if that was written, else empty.
	Wrote string

	// Again is when to look again at the latest, if the watch reports nothing meanwhile; zero for never.
	Again time.Duration
}

// Keeper keeps the definition of Applications in workload clusters as this program has it. It holds no state
// about a cluster: what it needs to know is in the metadata of the definition there, which is watched. It is safe for
// concurrent use.
type Keeper struct {
	want *wantedDefinition

	// owner is the hub as the owner of what is in the cluster.
	owner hubidentity.Owner

	// Users are as whom the clusters know Masthead.
	Users *readonlypolicy.Users
	Clock clock.PassiveClock

	// requestTimeout bounds each request, slowly is when a problem is looked at again that nobody reports the end of.
	requestTimeout time.Duration
	slowly         func() time.Duration
}

// NewKeeper reads the definition that is part of the program.
func NewKeeper(requestTimeout time.Duration, slowly func() time.Duration) (*Keeper, error) {
	want, err := embeddedDefinition()
	if err != nil {
		return nil, err
	}
	return &Keeper{want: want, Users: &readonlypolicy.Users{}, Clock: clock.RealClock{}, requestTimeout: requestTimeout, slowly: slowly}, nil
}

// Of returns the keeper for a cluster in which the hub owns what owner says.
func (k *Keeper) Of(owner hubidentity.Owner) *Keeper {
	out := *k
	out.owner = owner
	return &out
}

// Ensure makes a cluster have the definition. seen is what the watch of its metadata says; nil if there is none. As
// long as that is as it should be, ensure asks the cluster for nothing. An error is one that passes.
//
// The definition is never deleted, whatever happens: that would delete every Application, and the garbage collector
// everything that these own.
func (k *Keeper) Ensure(ctx context.Context, cluster mcr.ClusterName, crds definitions, seen *Seen) (State, error) {
	if seen == nil {
		return k.written(ctx, cluster, crds, nil)
	}
	if state, settled := k.judge(*seen); settled {
		return state, nil
	}
	// The watch can be behind, and only the whole definition says in which versions objects are stored.
	have, err := k.get(ctx, crds)
	switch {
	case apierrors.IsNotFound(err):
		return k.written(ctx, cluster, crds, nil)
	case apierrors.IsForbidden(err):
		return k.despite(k.refused(ReasonDefinitionForbidden, err), *seen), nil
	case err != nil:
		return State{}, fmt.Errorf("cannot get CustomResourceDefinition %q in cluster %q: %w", Name, cluster, err)
	}
	if state, settled := k.judge(SeenIn(have)); settled {
		return state, nil
	}
	state, err := k.written(ctx, cluster, crds, have)
	return k.despite(state, SeenIn(have)), err
}

// despite has Applications looked after as far as an older definition goes, if the cluster refused to have it upgraded:
// what is not in it yet is dropped by the API server.
func (k *Keeper) despite(state State, seen Seen) State {
	if state.Problem == nil || !k.want.isOlder(seen) {
		return state
	}
	state.Served, state.Notice, state.Problem = true, &condition.Problem{
		Reason: state.Problem.Reason, Message: state.Problem.Message + " The one of an older Masthead is used meanwhile.",
	}, nil
	return state
}

// judge says what a definition in a cluster means, going by its metadata, unless it has to be written.
func (k *Keeper) judge(seen Seen) (state State, settled bool) {
	switch {
	case !seen.ours:
		return State{Again: k.slowly(), Problem: &condition.Problem{
			Reason: ReasonDefinitionForeign,
			Message: fmt.Sprintf("The CustomResourceDefinition %q is in the cluster already and was not put there by Masthead. It is left alone, and "+
				"Applications are not looked at.", Name),
		}}, true
	case !k.owner.OwnsName(seen.hub):
		return State{Again: k.slowly(), Problem: &condition.Problem{
			Reason: ReasonDefinitionForeign,
			Message: fmt.Sprintf("The CustomResourceDefinition %q was put into the cluster by the hub %q. It is left alone, and Applications are not looked at.",
				Name, multicluster.BoundedText(seen.hub)),
		}}, true
	case seen.deleting:
		// It is written again when it is gone, which the watch reports.
		return State{}, true
	case seen.revision > k.want.revision:
		return State{Served: true, Notice: &condition.Problem{
			Reason: ReasonDefinitionNewer,
			Message: fmt.Sprintf("The CustomResourceDefinition %q is of a newer Masthead (revision %d, this one has %d) and is used as it is.",
				Name, seen.revision, k.want.revision),
		}}, true
	}
	return State{Served: true}, k.want.isIn(seen) && seen.hub == string(k.owner.ID)
}

// written writes the definition, over what the cluster has or anew, and makes of the answer what ensure returns.
func (k *Keeper) written(
	ctx context.Context, cluster mcr.ClusterName, crds definitions, have *unstructured.Unstructured,
) (State, error) {
	wrote, err := k.write(ctx, crds, have)
	switch {
	case err == nil:
		return State{Served: true, Wrote: wrote}, nil
	case apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err), apierrors.IsConflict(err):
		// The watch is behind, and will say so. This is for an event that was missed.
		return State{Again: definitionSoon}, nil
	case k.Users.Excuses(cluster, err, k.Clock.Now()):
		return State{Again: definitionSoon}, nil
	case apierrors.IsForbidden(err):
		return k.refused(ReasonDefinitionForbidden, err), nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err), apierrors.IsMethodNotSupported(err):
		return k.refused(ReasonDefinitionRejected, err), nil
	}
	return State{}, fmt.Errorf("cannot write CustomResourceDefinition %q in cluster %q: %w", Name, cluster, err)
}

func (k *Keeper) refused(reason string, err error) State {
	return State{Again: k.slowly(), Problem: &condition.Problem{
		Reason:  reason,
		Message: fmt.Sprintf("The cluster refused the CustomResourceDefinition %q: %s", Name, multicluster.BoundedText(err.Error())),
	}}
}

// write creates or replaces the definition. The generation that it will have is written into it; where that was wrong,
// because its content was right already, it is written once more.
func (k *Keeper) write(ctx context.Context, crds definitions, have *unstructured.Unstructured) (wrote string, err error) {
	wrote = "update"
	if have == nil {
		wrote = "create"
	}
	generation := k.want.nextGeneration(have)
	for range 2 {
		got, err := k.put(ctx, crds, k.want.over(have, generation), have == nil)
		if err != nil {
			return "", err
		}
		if got.GetGeneration() == generation {
			break
		}
		have, generation = got, got.GetGeneration()
	}
	return wrote, nil
}

func (k *Keeper) put(ctx context.Context, crds definitions, obj *unstructured.Unstructured, create bool) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, k.requestTimeout)
	defer cancel()
	obj.SetLabels(k.owner.Stamp(obj.GetLabels()))
	manager := k.owner.FieldManager(fleetv1alpha1.FieldManager)
	if create {
		return crds.Create(ctx, obj, metav1.CreateOptions{FieldManager: manager})
	}
	return crds.Update(ctx, obj, metav1.UpdateOptions{FieldManager: manager})
}

func (k *Keeper) get(ctx context.Context, crds definitions) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, k.requestTimeout)
	defer cancel()
	return crds.Get(ctx, Name, metav1.GetOptions{})
}
