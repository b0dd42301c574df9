// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	mcr "sigs.k8s.io/multicluster-runtime/pkg/multicluster"

	fleetv1alpha1 "github.com/masthead-dev/masthead/apis/fleet/v1alpha1"
	"github.com/masthead-dev/masthead/pkg/condition"
	"github.com/masthead-dev/masthead/pkg/hubidentity"
	"github.com/masthead-dev/masthead/pkg/install"
)

// Name is the name of the CustomResourceDefinition of Applications.
const Name = "applications.apps.masthead.dev"

// unseen is the consequence in messages about a definition not owned by Masthead.
const unseen = "Applications are not watched"

var about = install.Definition(Name) //nolint:gochecknoglobals // A constant.

// Resource is the resource of CustomResourceDefinitions.
var Resource = schema.GroupVersionResource{ //nolint:gochecknoglobals // A constant.
	Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
}

// State is the result of checking the definition in a cluster.
type State struct {
	// Served reports whether the cluster has Applications. A condition.Error beside it says how the definition differs
	// from this manager's; else, why the cluster has none.
	Served bool

	// Wrote is "create" or "update" if the definition was written, else empty.
	Wrote string
}

// Installer keeps the definition of Applications in workload clusters in line with this program's. It holds no state
// about a cluster: that is in the metadata of the definition there, which is watched. It is safe for concurrent use.
type Installer struct {
	want *wantedDefinition

	// owner is the hub as the owner of objects in the cluster.
	owner hubidentity.Owner

	// Users are Masthead's usernames in the clusters.
	Users *install.PolicyUsers
	Clock clock.PassiveClock

	// requestTimeout bounds each request.
	requestTimeout time.Duration
}

// NewKeeper reads the definition embedded in the program.
func NewKeeper(requestTimeout time.Duration) (*Installer, error) {
	want, err := embeddedDefinition()
	if err != nil {
		return nil, err
	}
	return &Installer{want: want, Users: &install.PolicyUsers{}, Clock: clock.RealClock{}, requestTimeout: requestTimeout}, nil
}

// ForOwner returns the keeper for a cluster where the hub is this owner.
func (k *Installer) ForOwner(owner hubidentity.Owner) *Installer {
	out := *k
	out.owner = owner
	return &out
}

// Ensure installs the definition in a cluster. seen is its metadata from the watch; nil if there is none. While that is
// as wanted, Ensure sends no request.
//
// The definition is never deleted: that would delete every Application, and the garbage collector would delete
// everything they own.
func (k *Installer) Ensure(ctx context.Context, cluster mcr.ClusterName, crds install.Objects, seen *Seen) (State, error) {
	if seen == nil {
		return k.written(ctx, cluster, crds, nil)
	}
	if state, settled, err := k.classify(*seen); settled {
		return state, err
	}
	// The watch can be behind, and only the full definition lists the versions in which objects are stored.
	have, err := k.writer(crds).Get(ctx, Name)
	switch {
	case apierrors.IsNotFound(err):
		return k.written(ctx, cluster, crds, nil)
	case err != nil:
		reasons := install.Reasons{Forbidden: fleetv1alpha1.ReasonDefinitionForbidden}
		return k.serveOlder(*seen, State{}, reasons.Problem("get", about, cluster, err))
	}
	if state, settled, err := k.classify(SeenIn(have)); settled {
		return state, err
	}
	state, err := k.written(ctx, cluster, crds, have)
	return k.serveOlder(SeenIn(have), state, err)
}

// serveOlder serves Applications with an older definition if the cluster refused the upgrade: the API server drops
// newer fields.
func (k *Installer) serveOlder(seen Seen, state State, err error) (State, error) {
	problem, ok := errors.AsType[*condition.Error](err)
	if !ok || !k.want.isOlder(seen) {
		return state, err
	}
	problem.Message += " Meanwhile, the definition of an older Masthead is used."
	return State{Served: true}, problem
}

// classify interprets a cluster's definition by its metadata. It is not settled if the definition has to be written.
func (k *Installer) classify(seen Seen) (state State, settled bool, err error) {
	switch {
	case !seen.marks.BelongTo(k.owner):
		return State{}, true, condition.NewError(fleetv1alpha1.ReasonDefinitionForeign, about.NotOurs(seen.marks, k.owner, unseen)).
			RetriedAfter(condition.SlowRetry())
	case seen.deleting:
		// It is written again once it is gone, which the watch reports.
		return State{}, true, condition.PendingError{}
	case seen.revision > k.want.revision:
		return State{Served: true}, true, condition.NewError(fleetv1alpha1.ReasonDefinitionNewer, fmt.Sprintf(
			"The CustomResourceDefinition %q is of a newer Masthead (revision %d, this one has %d) and is used unchanged.",
			Name, seen.revision, k.want.revision))
	}
	return State{Served: true}, k.want.isIn(seen) && seen.marks.AreStamped(k.owner), nil
}

// written writes the definition, over the cluster's or new, and converts the response into what Ensure returns.
func (k *Installer) written(
	ctx context.Context, cluster mcr.ClusterName, crds install.Objects, have *unstructured.Unstructured,
) (State, error) {
	wrote := install.Update
	if have == nil {
		wrote = install.Create
	}
	_, err := k.writer(crds).Write(ctx, have, k.want.nextGeneration(have), k.want.over)
	if k.Users.Excuses(cluster, err, k.Clock.Now()) {
		return State{}, condition.PendingError{After: condition.Soon}
	}
	if err := install.DefinitionReasons.Problem("write", about, cluster, err); err != nil {
		return State{}, err
	}
	return State{Served: true, Wrote: wrote}, nil
}

func (k *Installer) writer(crds install.Objects) install.Writer {
	return install.Writer{Objects: crds, Owner: k.owner, Timeout: k.requestTimeout}
}
