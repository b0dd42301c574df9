// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package terminal is how the command line writes for people.
//
// What it shows comes from objects that the owners of workload clusters wrote: conditions, messages, names. A terminal
// obeys what is written to it, so that such a text could hide lines, change the title of the window, or make a link of
// something else.
//
// It guarantees that no text which goes through Clean, and so no cell of a Table and no string of a Document, moves the
// cursor, changes a colour, or reorders what stands beside it. FuzzClean holds this. Colours are written only if
// ColoursFor says so: to a terminal, and if nobody asked for none.
//
// What does the owner of one workload cluster gain from the hub or another cluster through this? Nothing: they gain no
// way to whoever looks.
package terminal
