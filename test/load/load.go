// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/masthead-dev/masthead/test/localfleet"
)

// The fleet's sample API, and the other resources that are read.
var (
	claims     = schema.GroupVersionResource{Group: "database.acmeco.org", Version: "v1alpha1", Resource: "mysqlinstancerequirements"}
	composites = schema.GroupVersionResource{Group: "database.acmeco.org", Version: "v1alpha1", Resource: "compositemysqlinstances"}
	secrets    = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

const (
	// incarnationLabel names one creation of a claim.
	incarnationLabel = "incarnation"

	// namespace is where the claims are in the workload clusters.
	namespace = metav1.NamespaceDefault

	// ownNames is how many names each cluster has for itself, and sharedNames how many names all clusters share.
	ownNames, sharedNames = 12, 4

	// sharedPrefix is the prefix of the shared names.
	sharedPrefix = "shared-"

	// shortestPause and longestPause are the limits of the pause between two steps in one cluster.
	shortestPause, longestPause = 20 * time.Millisecond, 150 * time.Millisecond
)

// Fleet has the configurations of the clusters that the load is put on, and of their hub.
type Fleet interface {
	Config(cluster string) (*rest.Config, error)
}

// Load is a mixed load on the workload clusters of a fleet.
type Load struct {
	target   string
	hub      dynamic.Interface
	clusters []*cluster

	// stop ends the load, closeHistory the record of its history as well.
	stop, closeHistory context.CancelFunc

	working sync.WaitGroup
	// steps counts the steps in all clusters.
	steps   atomic.Int64
	history *history
}

// cluster is the load on one workload cluster. It is used by one goroutine, and by Problems when that has ended.
type cluster struct {
	name   string
	uid    types.UID
	client dynamic.Interface
	random *rand.Rand

	// wanted are the claims that were created and not deleted, by name.
	wanted map[string]wanted

	// incarnations counts the attempts to create a claim.
	incarnations int

	err error
}

// wanted is one claim that the cluster should have.
type wanted struct {
	incarnation string
	version     string
	storageGB   int64
}

// Start begins to put load on the clusters. The claims are carried to the namespace target of the hub. The same seed
// makes the same choices, though not at the same moments.
func Start(ctx context.Context, fleet Fleet, target string, seed uint64, names ...string) (*Load, error) {
	l := &Load{target: target}
	var err error
	if l.hub, err = newClient(fleet, localfleet.HubName); err != nil {
		return nil, err
	}
	for i, name := range names {
		c := &cluster{name: name, random: rand.New(rand.NewPCG(seed, uint64(i))), wanted: map[string]wanted{}}
		if c.client, err = newClient(fleet, name); err != nil {
			return nil, err
		}
		kubeSystem, err := c.client.Resource(namespaces).Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("cannot identify cluster %q: %w", name, err)
		}
		c.uid = kubeSystem.GetUID()
		l.clusters = append(l.clusters, c)
	}
	watching, closeHistory := context.WithCancel(context.WithoutCancel(ctx))
	working, stop := context.WithCancel(watching)
	l.stop, l.closeHistory = stop, closeHistory
	if err := l.watchHistory(watching); err != nil {
		closeHistory()
		return nil, err
	}
	for _, c := range l.clusters {
		l.working.Go(func() { c.err = c.work(working, &l.steps) })
	}
	return l, nil
}

// Steps is how many steps the load has had so far.
func (l *Load) Steps() int64 { return l.steps.Load() }

// Operations is the number of changes of names in the hub and of reports of claims so far, and whether none was missed.
// If none was, Problems includes the names that the claims contradict.
func (l *Load) Operations() (n int, complete bool) {
	l.history.mu.Lock()
	defer l.history.mu.Unlock()
	return l.history.names.Len(), !l.history.incomplete
}

// Close ends the load and the record of its history. That goes on after Stop, since what was requested is still done.
func (l *Load) Close() { l.closeHistory() }

// Stop ends the load, and returns the number of its steps. It fails if a request to a workload cluster failed; nothing
// that Masthead does may have that effect.
func (l *Load) Stop() (steps int64, err error) {
	l.stop()
	l.working.Wait()
	for _, c := range l.clusters {
		err = errors.Join(err, c.err)
	}
	return l.Steps(), err
}

// DeleteAll deletes every claim. After that, Problems is empty as soon as nothing is left. The load must have been
// stopped.
func (l *Load) DeleteAll(ctx context.Context) error {
	for _, c := range l.clusters {
		for name := range c.wanted {
			if err := c.delete(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

func newClient(fleet Fleet, name string) (dynamic.Interface, error) {
	config, err := fleet.Config(name)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return dynamic.NewForConfig(config)
}

// work does one step after the other until the context ends.
func (c *cluster) work(ctx context.Context, steps *atomic.Int64) error {
	for {
		pause := time.NewTimer(shortestPause + time.Duration(c.random.Int64N(int64(longestPause-shortestPause))))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		if err := c.step(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("a step in cluster %q has failed at %s: %w", c.name, time.Now().UTC().Format(time.RFC3339Nano), err)
		}
		steps.Add(1)
	}
}

func (c *cluster) step(ctx context.Context) error {
	// A step that has begun is finished, so that the record matches what was done.
	ctx = context.WithoutCancel(ctx)
	name := c.ownPrefix() + strconv.Itoa(c.random.IntN(ownNames))
	if c.random.IntN(4) == 0 {
		name = sharedPrefix + strconv.Itoa(c.random.IntN(sharedNames))
	}
	dice := c.random.IntN(100)
	_, exists := c.wanted[name]
	switch {
	case !exists:
		err := c.create(ctx, name)
		if _, created := c.wanted[name]; created && dice < 10 {
			return c.delete(ctx, name)
		}
		return err
	case dice < 55:
		return c.change(ctx, name)
	case dice < 65:
		return c.deleteSecret(ctx, name)
	case dice < 75:
		return c.spoilSecret(ctx, name)
	}
	return c.delete(ctx, name)
}

// create creates a claim, unless its predecessor of the same name is still being deleted.
func (c *cluster) create(ctx context.Context, name string) error {
	c.incarnations++
	w := wanted{incarnation: fmt.Sprintf("%s-%d", c.name, c.incarnations), version: "5.7", storageGB: c.random.Int64N(1000)}
	claim := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"version": w.version, "storageGB": w.storageGB,
		"writeConnectionSecretToRef": map[string]any{"name": secretName(name)},
	}}}
	claim.SetAPIVersion(claims.GroupVersion().String())
	claim.SetKind("MySQLInstanceRequirement")
	claim.SetName(name)
	claim.SetLabels(map[string]string{incarnationLabel: w.incarnation})
	_, err := c.client.Resource(claims).Namespace(namespace).Create(ctx, claim, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot create %q: %w", name, err)
	}
	c.wanted[name] = w
	return nil
}

// change changes the spec of a claim. A new version causes a new password.
func (c *cluster) change(ctx context.Context, name string) error {
	w := c.wanted[name]
	w.storageGB = c.random.Int64N(1000)
	if c.random.IntN(3) == 0 {
		w.version = fmt.Sprintf("8.%d", c.random.IntN(1000))
	}
	patch := fmt.Appendf(nil, `{"spec":{"version":%q,"storageGB":%d}}`, w.version, w.storageGB)
	_, err := c.client.Resource(claims).Namespace(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("cannot change %q (%s): %w", name, w.incarnation, err)
	}
	c.wanted[name] = w
	return nil
}

func (c *cluster) delete(ctx context.Context, name string) error {
	err := c.client.Resource(claims).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if err != nil {
		return fmt.Errorf("cannot delete %q (%s): %w", name, c.wanted[name].incarnation, err)
	}
	delete(c.wanted, name)
	return nil
}

func (c *cluster) deleteSecret(ctx context.Context, name string) error {
	err := c.client.Resource(secrets).Namespace(namespace).Delete(ctx, secretName(name), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *cluster) spoilSecret(ctx context.Context, name string) error {
	patch := []byte(`{"data":{"password":"c3BvaWxlZA==","added":"c3BvaWxlZA=="}}`)
	_, err := c.client.Resource(secrets).Namespace(namespace).Patch(ctx, secretName(name), types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// ownPrefix is the prefix of the names that the cluster has for itself.
func (c *cluster) ownPrefix() string { return c.name + "-" }

// chooses is whether a name is one of those that the load chooses from. There may be others in the cluster, which the
// load does not check.
func (c *cluster) chooses(name string) bool {
	return strings.HasPrefix(name, c.ownPrefix()) || strings.HasPrefix(name, sharedPrefix)
}

// secretName is the name of the connection Secret that a claim requests.
func secretName(claim string) string { return claim + "-creds" }
