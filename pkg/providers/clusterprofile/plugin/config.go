// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-inventory-api/pkg/access"
	"sigs.k8s.io/yaml"
)

// Load reads the operator's file. Its plugins are run for the ClusterProfiles of the namespaces, and for no other.
func Load(path string, namespaces []string) (*Plugins, error) {
	data, err := os.ReadFile(path) //nolint:gosec // The command line names the file.
	if err != nil {
		return nil, fmt.Errorf("cannot read the access providers: %w", err)
	}
	providers, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("cannot use the access providers in %s: %w", path, err)
	}
	p := &Plugins{providers: providers, places: map[string]places{}, limit: timeLimit}
	for _, namespace := range namespaces {
		p.places[namespace] = newPlaces()
	}
	return p, nil
}

func parse(data []byte) ([]access.Provider, error) {
	var c access.Config
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, err
	}
	if len(c.Providers) == 0 {
		return nil, errors.New("there are none")
	}
	named := map[string]bool{}
	for i := range c.Providers {
		p := &c.Providers[i]
		if err := validate(p, named[p.Name]); err != nil {
			return nil, fmt.Errorf("provider %q: %w", p.Name, err)
		}
		named[p.Name] = true
	}
	return c.Providers, nil
}

func validate(p *access.Provider, duplicate bool) error {
	e := cmp.Or(p.ExecConfig, &clientcmdapi.ExecConfig{})
	_, missing := exec.LookPath(e.Command)
	switch {
	case p.Name == "" || duplicate:
		return errors.New("its name is not unique")
	case cmp.Or(p.ProfileSourcedCLIArgsPolicy, access.ProfileSourcedCLIArgsPolicyIgnore) != access.ProfileSourcedCLIArgsPolicyIgnore,
		cmp.Or(p.ProfileSourcedEnvVarsPolicy, access.ProfileSourcedEnvVarsPolicyIgnore) != access.ProfileSourcedEnvVarsPolicyIgnore:
		return errors.New("arguments and variables of ClusterProfiles are never used: the policies must be Ignore")
	case e.APIVersion != clientauthenticationv1.SchemeGroupVersion.String():
		return fmt.Errorf("apiVersion is not %s", clientauthenticationv1.SchemeGroupVersion)
	case e.InteractiveMode == clientcmdapi.AlwaysExecInteractiveMode:
		return errors.New("interactiveMode is Always, and there is no terminal")
	case !filepath.IsAbs(e.Command):
		return errors.New("command is not an absolute path")
	case missing != nil:
		return fmt.Errorf("its command cannot be run: %w", missing)
	}
	return nil
}
