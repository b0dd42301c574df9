// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"

	"github.com/masthead-dev/masthead/pkg/providers/clusterprofile"
)

const (
	timeLimit = 10 * time.Second
	maxAnswer = 256 << 10 // In bytes.

	// One namespace's plugins do not delay another's, and hold few of the workers that connect clusters.
	maxRunning = 4
	maxWaiting = 16
)

// Plugins are the programs of the operator's file, for the ClusterProfiles of some namespaces.
type Plugins struct {
	providers []access.Provider
	places    map[string]places // By namespace.
	limit     time.Duration
}

var _ clusterprofile.Plugins = &Plugins{}

// Names returns the access providers that have a plugin for the ClusterProfiles of a namespace, the preferred first.
func (p *Plugins) Names(namespace string) []string {
	if _, ok := p.places[namespace]; !ok {
		return nil
	}
	var names []string
	for i := range p.providers {
		names = append(names, p.providers[i].Name)
	}
	return names
}

// Run returns what the plugin of an access provider answers for the cluster of a ClusterProfile in a namespace. Its
// errors repeat nothing of what the plugin writes.
func (p *Plugins) Run(
	ctx context.Context, namespace, name string, cluster *clientauthenticationv1.Cluster,
) (*clientauthenticationv1.ExecCredentialStatus, error) {
	i := slices.IndexFunc(p.providers, func(p access.Provider) bool { return p.Name == name })
	places, ok := p.places[namespace]
	if !ok || i < 0 {
		return nil, errors.New("it may not be run for this namespace")
	}
	e := p.providers[i].ExecConfig
	in := clientauthenticationv1.ExecCredential{TypeMeta: metav1.TypeMeta{Kind: kind, APIVersion: e.APIVersion}}
	if e.ProvideClusterInfo {
		in.Spec.Cluster = cluster
	}
	info, err := json.Marshal(in)
	if err != nil {
		return nil, errors.New("the cluster cannot be described to it")
	}
	leave, err := places.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	out, err := execute(ctx, e, info)
	if err != nil {
		return nil, err
	}
	return parseAnswer(out, e.APIVersion)
}

const kind = "ExecCredential"

// parseAnswer does not repeat the answer, which may hold a token.
func parseAnswer(out []byte, apiVersion string) (*clientauthenticationv1.ExecCredentialStatus, error) {
	answer := &clientauthenticationv1.ExecCredential{}
	err := json.Unmarshal(out, answer)
	switch {
	case err != nil, answer.Kind != kind, answer.APIVersion != apiVersion, answer.Status == nil:
		return nil, fmt.Errorf("its answer is not an %s of %s with a status", kind, apiVersion)
	case answer.Status.Token == "" && answer.Status.ClientCertificateData == "":
		return nil, errors.New("its answer has neither a token nor a client certificate")
	}
	return answer.Status, nil
}

// execute runs a program until the context ends, and returns what it writes. Its error output is dropped: it may hold a
// token, and who writes the profile may choose its text.
func execute(ctx context.Context, e *clientcmdapi.ExecConfig, info []byte) ([]byte, error) {
	cmd := exec.CommandContext(ctx, e.Command, e.Args...) //nolint:gosec // The operator's file names it.
	for _, v := range e.Env {
		cmd.Env = append(cmd.Env, v.Name+"="+v.Value)
	}
	cmd.Env = append(cmd.Env, "KUBERNETES_EXEC_INFO="+string(info))
	cmd.Dir = "/"
	out := &output{}
	cmd.Stdout = out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // For a child that holds the output, and left the group.
	err := cmd.Run()
	if cmd.Process != nil {
		end(cmd.Process.Pid)
	}
	var exit *exec.ExitError
	switch {
	case out.large:
		return nil, fmt.Errorf("its answer is larger than %d bytes", maxAnswer)
	case ctx.Err() != nil:
		return nil, errors.New("it did not end in time")
	case errors.As(err, &exit):
		return nil, fmt.Errorf("it ended with %w", exit)
	case err != nil:
		return nil, errors.New("it cannot be run, or left a process that holds its output")
	}
	return out.kept.Bytes(), nil
}

// end kills the children that a program left in its process group. They are reaped here, because nothing else does it
// where the manager is the first process of its container.
func end(group int) {
	_ = syscall.Kill(-group, syscall.SIGKILL)
	for {
		if _, err := syscall.Wait4(-group, nil, 0, nil); err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// output keeps what a program writes, up to maxAnswer. More is an error, which closes the program's output.
type output struct {
	kept  bytes.Buffer
	large bool
}

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	if o.large = o.large || o.kept.Len()+len(p) > maxAnswer; o.large {
		return 0, bytes.ErrTooLarge
	}
	return o.kept.Write(p)
}

// places bound how many plugins of one namespace run and wait.
type places struct{ running, waiting chan struct{} }

func newPlaces() places {
	return places{running: make(chan struct{}, maxRunning), waiting: make(chan struct{}, maxWaiting)}
}

// enter waits for a place until the context ends, if not too many wait.
func (p places) enter(ctx context.Context) (leave func(), err error) {
	busy := errors.New("too many plugins run for this namespace")
	select {
	case p.waiting <- struct{}{}:
		defer func() { <-p.waiting }()
	default:
		return nil, busy
	}
	select {
	case p.running <- struct{}{}:
		return func() { <-p.running }, nil
	case <-ctx.Done():
		return nil, busy
	}
}
