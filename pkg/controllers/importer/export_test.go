// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/masthead-dev/masthead/pkg/controllers/importer/token"
	"github.com/masthead-dev/masthead/pkg/controllers/importer/workload"
	"github.com/masthead-dev/masthead/pkg/takeover"
)

// Starts starts one Reconciler after the other, as a manager is started again. They share what was read of the hub's
// CRDs, which takes most of the time of a start, and nothing else.
type Starts struct {
	options Options
	kinds   *cache.LRUExpireCache
}

// NewStarts is for Reconcilers with some options.
func NewStarts(o Options) *Starts { return &Starts{options: o, kinds: newKinds(clock.RealClock{})} }

// Start returns a Reconciler that knows nothing. It reads everything from the hub, and nothing wakes it.
func (s *Starts) Start(hub client.Client) (*Reconciler, error) {
	c := clock.RealClock{}
	minted, err := token.New(s.options.AllowedTokenEndpoints, s.options.TokenAuthorities, c)
	if err != nil {
		return nil, err
	}
	watched := map[schema.GroupVersionKind]bool{}
	ofHub := &hubObjects{hub: hub, live: hub, owned: hub}
	return &Reconciler{
		hubObjects: ofHub, members: unindexed{hub}, mapper: hub.RESTMapper(), recorder: &events.FakeRecorder{}, clock: c,
		watch: func(_ context.Context, gvk schema.GroupVersionKind) error {
			watched[gvk] = true
			return nil
		},
		watched:      func() []schema.GroupVersionKind { return slices.Collect(maps.Keys(watched)) },
		watchMembers: func(context.Context, schema.GroupVersionKind) error { return nil },
		verify:       func(ctx context.Context, namespace string) error { return takeover.Verify(ctx, hub, namespace) },
		kinds:        s.kinds, states: newStates(),
		kubeconfigs: &kubeconfigs{
			hubObjects: ofHub, clock: c, creds: s.options.Credentials, tokens: minted, accounts: minted.OfAccounts(), clusters: workload.NewClusters(c, nil),
			places: newPlaces(DefaultMaxConcurrentReconciles, func(types.NamespacedName) {}),
		},
	}, nil
}

// unindexed looks members up by the name of their cluster where there is no index.
type unindexed struct{ client.Reader }

// List implements client.Reader.
func (u unindexed) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := &client.ListOptions{}
	options.ApplyOptions(opts)
	cluster, _ := options.FieldSelector.RequiresExactMatch(clusterNameField)
	options.FieldSelector = nil
	if err := u.Reader.List(ctx, list, options); err != nil {
		return err //nolint:wrapcheck // The error is the hub's.
	}
	if members, ok := list.(*unstructured.UnstructuredList); ok {
		members.Items = slices.DeleteFunc(members.Items, func(o unstructured.Unstructured) bool { return clusterName(&o) != cluster })
	}
	return nil
}

// FindKind returns an error if the hub does not serve a kind.
func (r *Reconciler) FindKind(ctx context.Context, kind schema.GroupKind) error {
	_, err := r.mapping(ctx, kind)
	return err
}

// IsNotServed reports whether it is that error.
func IsNotServed(err error) bool { return errors.Is(err, errNotServed) }
