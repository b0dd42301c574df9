// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/reflection"
)

// kindsFor is how long the kinds found for a cloud are cached: looking them up costs a request for each.
const kindsFor = 10 * time.Minute

// kinds caches what the hub serves for each cloud.
type kinds struct {
	clock clock.Clock

	mu    sync.Mutex
	known map[reflection.Cloud]*cloudKinds
	// granted is when the hub last said that the manager may import.
	granted time.Time
}

func (k *kinds) isGranted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.granted.IsZero() && k.clock.Since(k.granted) <= kindsFor
}

func (k *kinds) grant() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.granted = k.clock.Now()
}

// capabilities are what the hub serves for the cloud of an import, and which namespaces may use its provider
// configuration.
type capabilities struct {
	*cloudKinds

	configAllows func(namespace string) bool
}

// cloudKinds is what the hub serves for a cloud.
type cloudKinds struct {
	at      time.Time
	schemas reflection.Schemas
}

func newKinds(c clock.Clock) *kinds {
	return &kinds{clock: c, known: map[reflection.Cloud]*cloudKinds{}}
}

func (k *kinds) get(name reflection.Cloud) *cloudKinds {
	k.mu.Lock()
	defer k.mu.Unlock()
	known := k.known[name]
	if known == nil || k.clock.Since(known.at) > kindsFor {
		return nil
	}
	return known
}

// forget makes the next pass look up the kinds of a cloud.
func (k *kinds) forget(name reflection.Cloud) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, name)
}

func (k *kinds) put(name reflection.Cloud, known *cloudKinds) {
	known.at = k.clock.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known[name] = known
}
