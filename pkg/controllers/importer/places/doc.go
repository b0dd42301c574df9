// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package places bounds how many imported clusters and token endpoints are queried at once: half of the workers, and
// half of these for the imports of one namespace. An import without a place is woken in turn when one is free.
//
// What does the owner of one imported cluster gain from the hub or another cluster through this? Nothing. Clusters that
// hang take the places of their own namespace; the imports of others go on.
package places
