// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/masthead-dev/masthead/test/harness"
	"github.com/masthead-dev/masthead/test/localfleet"
)

const (
	namespace = "default"
	target    = "bar"
	patience  = 3 * time.Minute
)

type bench struct {
	fleet   *localfleet.Fleet
	manager *harness.Manager
}

func (b *bench) enrol(ctx context.Context, name string) error {
	_, err := harness.Kubectl(ctx, b.fleet, localfleet.HubName, "label", "--overwrite", "clusters.cluster.x-k8s.io", name, "masthead.dev/enroll=true")
	return err
}

func (b *bench) unenrol(ctx context.Context, name string) error {
	if _, err := harness.Kubectl(ctx, b.fleet, localfleet.HubName, "label", "clusters.cluster.x-k8s.io", name, "masthead.dev/enroll-"); err != nil {
		return err
	}
	_, err := harness.Kubectl(ctx, b.fleet, localfleet.HubName, "wait", "--for=delete", "--timeout=60s", "clusterprofiles/capi-"+name)
	return err
}

func (b *bench) waitServed(ctx context.Context, name string) error {
	client := harness.NewClient(b.fleet)
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := client.Get(ctx, name, "{.kind}", "mysqlinstancerequirements")
		return err == nil, nil
	})
}

// settled waits until the number of goroutines stays the same for five seconds.
func (b *bench) settled(ctx context.Context) (memory int64, goroutines float64, err error) {
	since := time.Now()
	err = wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		m, err := b.manager.Metrics(ctx)
		if err != nil {
			return false, err
		}
		if now := m.Value("go_goroutines"); now != goroutines {
			goroutines, since = now, time.Now()
		}
		return time.Since(since) > 5*time.Second, nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("the manager does not come to rest: %w", err)
	}
	memory, err = b.manager.ResidentBytes()
	return memory, goroutines, err
}

func (b *bench) claim(ctx context.Context, cluster, name string) error {
	return harness.Apply(ctx, b.fleet, cluster, fmt.Sprintf(`
apiVersion: database.acmeco.org/v1alpha1
kind: MySQLInstanceRequirement
metadata: {name: %[1]s, namespace: %[2]s}
spec: {version: "5.7", storageGB: 20, writeConnectionSecretToRef: {name: %[1]s-creds}}
`, name, namespace))
}

// claimToSecret is the time from the return of the request that creates a claim to the event that announces its Secret.
func (b *bench) claimToSecret(ctx context.Context, cluster, name string) (time.Duration, error) {
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	return b.measure(ctx, cluster, secrets, namespace, name+"-creds", func() error { return b.claim(ctx, cluster, name) })
}

// labelToReconcile is the time from the return of the request that labels a Cluster to the event that announces the hub
// object of a claim that was waiting in it.
func (b *bench) labelToReconcile(ctx context.Context, cluster, name string) (time.Duration, error) {
	if err := b.unenrol(ctx, cluster); err != nil {
		return 0, err
	}
	if err := b.claim(ctx, cluster, name); err != nil {
		return 0, err
	}
	claims := schema.GroupVersionResource{Group: "database.acmeco.org", Version: "v1alpha1", Resource: "mysqlinstancerequirements"}
	return b.measure(ctx, localfleet.HubName, claims, target, name, func() error { return b.enrol(ctx, cluster) })
}

// measure watches for one object, acts, and returns how long after the action the object existed.
func (b *bench) measure(
	ctx context.Context, cluster string, resource schema.GroupVersionResource, namespace, name string, act func() error,
) (time.Duration, error) {
	config, err := b.fleet.Config(cluster)
	if err != nil {
		return 0, err
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w, err := client.Resource(resource).Namespace(namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String(),
	})
	if err != nil {
		return 0, fmt.Errorf("cannot watch %s in cluster %q: %w", resource.Resource, cluster, err)
	}
	defer w.Stop()
	if err := act(); err != nil {
		return 0, err
	}
	start := time.Now()
	if _, ok := <-w.ResultChan(); !ok {
		return 0, fmt.Errorf("%s %s/%s did not appear in cluster %q within %s", resource.Resource, namespace, name, cluster, patience)
	}
	return time.Since(start), nil
}
