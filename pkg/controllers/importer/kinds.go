// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/masthead-dev/masthead/pkg/reflection"
)

// kindsFor is how long the kinds found for a cloud are cached: looking them up costs a request for each.
const kindsFor = 10 * time.Minute

// grantedKey is the key of what is cached while the manager may import.
type grantedKey struct{}

func newKinds(c clock.PassiveClock) *cache.LRUExpireCache {
	return cache.NewLRUExpireCacheWithClock(16, c) // There are fewer clouds.
}

// capabilities are what the hub serves for the cloud of an import, and which namespaces may use its provider
// configuration.
type capabilities struct {
	schemas      reflection.Schemas
	configAllows func(namespace string) bool
}
