// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package places bounds how many imported clusters and token endpoints are asked at once: half of the workers, and half
// of these for the imports of one namespace. Who finds no place is woken when there is one, in turn.
//
// What does the owner of one imported cluster gain from the hub or another cluster through this? Nothing. With clusters
// that hang he takes the places of his own namespace; the imports of others go on.
package places
