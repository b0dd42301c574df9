// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printed runs the console blocks of the README and of the pages about installation as they are printed, on API
// servers that have nothing, and compares what they print with what the pages say.
//
// Every block is run, or listed with the reason why it is not. The page that walks through every command of the plugin
// is run on the fleet of the demo, and can be rewritten with what was printed (-update).
package printed
