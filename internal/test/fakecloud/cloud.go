// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package fakecloud

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
)

// Cloud is the accounts, subscriptions and projects that the providers of one hub reach. All methods may be called at
// the same time.
type Cloud struct {
	mu        sync.Mutex
	resources map[resourceID]*cloudResource
	denied    map[string]bool
	throttled int
	requests  map[string]int
	mutations []Mutation
	// rotation is increased to renew credentials at once.
	rotation int
}

// Mutation is one attempt to change the cloud.
type Mutation struct {
	// Kind is the kind of the managed resource, with its legacy group: "eks.aws.upbound.io/NodeGroup".
	Kind string
	// ID is the resource's identifier in the cloud.
	ID string
	// Verb is Create, Update or Delete.
	Verb string
}

// String is the mutation in one line.
func (m Mutation) String() string { return m.Verb + " " + m.Kind + " " + m.ID }

// resourceID is the legacy kind of a resource and its name in the cloud.
type resourceID struct{ kind, id string }

// cloudResource is what the cloud knows about a resource.
type cloudResource struct {
	// atProvider is what the provider would write into the status, with objects where a version of the CRD may have lists
	// of one.
	atProvider map[string]any
	// connection is what the provider would write into the connection Secret. If nil, it would write nothing.
	connection func(ctx context.Context) (map[string][]byte, error)
	// tagged reports whether a provider has put its tags on the resource.
	tagged bool
}

// New returns an empty cloud.
func New() *Cloud {
	return &Cloud{resources: make(map[resourceID]*cloudResource), denied: make(map[string]bool), requests: make(map[string]int)}
}

// Mutations are the attempts to change the cloud so far.
func (c *Cloud) Mutations() []Mutation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mutations)
}

// Requests counts the requests that only read, by kind ("eks.aws.upbound.io/Cluster").
func (c *Cloud) Requests() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests)
}

// TestingT is what FailOnMutation needs of a test. GinkgoT() is one.
type TestingT interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
}

// FailOnMutation fails the test at its end if anything tried to change the cloud.
func (c *Cloud) FailOnMutation(t TestingT) {
	t.Helper()
	t.Cleanup(func() {
		for _, mutation := range c.Mutations() {
			t.Errorf("the cloud received a request to change: %s", mutation)
		}
	})
}

// Deny makes the cloud answer that the provider's identity lacks the right to read resources of some kinds
// ("eks.aws.upbound.io/NodeGroup").
func (c *Cloud) Deny(kinds ...string) { c.setDenied(true, kinds) }

// Allow undoes Deny.
func (c *Cloud) Allow(kinds ...string) { c.setDenied(false, kinds) }

func (c *Cloud) setDenied(denied bool, kinds []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, kind := range kinds {
		c.denied[kind] = denied
	}
}

// Throttle makes the cloud refuse its next n requests because there are too many.
func (c *Cloud) Throttle(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.throttled = n
}

// RotateTokens makes every ClusterAuth renew its token, and every AKS cluster its credentials, at the provider's next
// check.
func (c *Cloud) RotateTokens() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rotation++
}

func (c *Cloud) currentRotation() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rotation
}

// steady makes a cluster return the same credentials until they are rotated.
func (c *Cloud) steady(publish func(context.Context) (map[string][]byte, error)) func(context.Context) (map[string][]byte, error) {
	var mu sync.Mutex
	var published map[string][]byte
	at := 0
	return func(ctx context.Context) (map[string][]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if now := c.currentRotation(); published == nil || at != now {
			made, err := publish(ctx)
			if err != nil {
				return nil, err
			}
			published, at = made, now
		}
		return maps.Clone(published), nil
	}
}

func (c *Cloud) add(id resourceID, resource *cloudResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.resources[id] = resource
}

// change changes what the cloud knows about a resource, not through a provider. It reports whether the resource exists.
func (c *Cloud) change(id resourceID, change func(atProvider map[string]any)) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	resource, ok := c.resources[id]
	if ok {
		change(resource.atProvider)
	}
	return ok
}

func (c *Cloud) remove(id resourceID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.resources[id]
	delete(c.resources, id)
	return ok
}

// read answers a request that only reads. The returned resource is a copy; it is nil if the resource does not exist.
func (c *Cloud) read(id resourceID) (*cloudResource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.requests[id.kind]++
	if c.throttled > 0 {
		c.throttled--
		return nil, errors.New("ThrottlingException: Rate exceeded")
	}
	if c.denied[id.kind] {
		return nil, fmt.Errorf("AccessDeniedException: the identity is not authorized to describe %s %q", id.kind, id.id)
	}
	found, ok := c.resources[id]
	if !ok {
		return nil, nil
	}
	return &cloudResource{
		atProvider: runtime.DeepCopyJSON(found.atProvider), connection: found.connection, tagged: found.tagged,
	}, nil
}

// create creates the resource that forProvider describes.
func (c *Cloud) create(id resourceID, forProvider map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mutations = append(c.mutations, Mutation{Kind: id.kind, ID: id.id, Verb: "Create"})
	c.resources[id] = &cloudResource{atProvider: runtime.DeepCopyJSON(forProvider), tagged: true}
}

// update sets the fields of forProvider, and the tags of the provider, on the resource.
func (c *Cloud) update(id resourceID, forProvider map[string]any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mutations = append(c.mutations, Mutation{Kind: id.kind, ID: id.id, Verb: "Update"})
	found, ok := c.resources[id]
	if !ok {
		return fmt.Errorf("ResourceNotFoundException: there is no %s %q", id.kind, id.id)
	}
	maps.Copy(found.atProvider, runtime.DeepCopyJSON(forProvider))
	found.tagged = true
	return nil
}

// destroy removes the resource, as the cloud would.
func (c *Cloud) destroy(id resourceID) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mutations = append(c.mutations, Mutation{Kind: id.kind, ID: id.id, Verb: "Delete"})
	if id.kind == kindEKSCluster {
		for other := range c.resources {
			if other.kind == kindEKSNodeGroup && belongsTo(other.id, id.id) {
				return errors.New("ResourceInUseException: Cluster has nodegroups attached")
			}
		}
	}
	delete(c.resources, id)
	return nil
}
