// A mistake of ours costs one page and not the console.

import { Component, type ErrorInfo, type ReactNode } from "react";
import { Button } from "react-aria-components";

interface Props {
  /** Where the reader is; going elsewhere tries again. */
  place: string;
  children: ReactNode;
}

export class Boundary extends Component<Props, { error?: Error; place: string }> {
  override state: { error?: Error; place: string } = { place: this.props.place };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  static getDerivedStateFromProps(props: Props, state: { place: string }) {
    return props.place === state.place ? null : { place: props.place, error: undefined };
  }

  override componentDidCatch(error: Error, info: ErrorInfo) {
    console.error("the page broke", error, info.componentStack);
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return (
      <div className="page" role="alert">
        <h1 tabIndex={-1}>This page broke</h1>
        <p>
          It is a mistake of the console, and nothing was sent because of it. What waits is still at the host.
        </p>
        <pre className="code">{this.state.error.message}</pre>
        <Button className="button" onPress={() => location.reload()}>
          Load it again
        </Button>
      </div>
    );
  }
}
