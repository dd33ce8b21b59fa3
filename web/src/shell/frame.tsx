// The frame of every page: navigation, session menu, theme and keyboard shortcuts.

import { type ReactNode, useCallback, useEffect, useRef, useState } from "react";
import {
  Button,
  Header,
  Link,
  Menu,
  MenuItem,
  MenuSection,
  MenuTrigger,
  Popover,
} from "react-aria-components";
import { useInbox } from "../host/inbox";
import icon from "../icon.svg";
import { navigate, usePath } from "../router";
import { type Place, placesFor } from "../routes";
import { useSession } from "../session";
import { shown } from "../text/shown";
import { chooseTheme, type Theme, theme } from "../theme";
import { Keys } from "./keys";
import { failed } from "./notices";
import { isShortcut } from "./shortcut";

export function Frame({ children }: { children: ReactNode }) {
  const { session } = useSession();
  const path = usePath();
  const places = placesFor(session);
  const [help, setHelp] = useState(false);
  useKeys(
    places,
    useCallback(() => setHelp(true), []),
  );
  return (
    <div className="frame">
      <a className="skip" href="#main">
        Skip to content
      </a>
      <header className="bar">
        <Link className="brand" href="/">
          <img src={icon} alt="" width="24" height="24" />
          <span>toolgate</span>
        </Link>
        {places.length > 0 && <Places places={places} path={path} />}
        <div className="bar-end">
          <Button className="button button-quiet bar-help" onPress={() => setHelp(true)}>
            <kbd>?</kbd>
            <span className="bar-word">Keys</span>
          </Button>
          <Me />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Keys isOpen={help} onClose={() => setHelp(false)} places={places} />
    </div>
  );
}

function Places({ places, path }: { places: Place[]; path: string }) {
  const { open } = useInbox();
  const list = useRef<HTMLUListElement>(null);
  const hasCount = open > 0;
  // On a phone the navigation may not fit, and the count takes space too.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the position depends on the path and the count.
  useEffect(() => {
    const here = list.current?.querySelector("[aria-current]");
    here?.scrollIntoView?.({ block: "nearest", inline: "center", behavior: "instant" });
  }, [path, hasCount]);
  return (
    <nav className="places" aria-label="Pages">
      <ul ref={list}>
        {places.map((place) => {
          const here = place.path === "/" ? path === "/" : path.startsWith(place.path);
          return (
            <li key={place.path}>
              <Link
                className="place"
                href={place.path}
                {...(here ? { "aria-current": "page" as const } : {})}
              >
                <span>{place.name}</span>
                {place.path === "/" && hasCount && (
                  <span className="count">
                    <span aria-hidden="true">{open > 99 ? "99+" : open}</span>
                    <span className="visually-hidden">, {open} waiting</span>
                  </span>
                )}
              </Link>
            </li>
          );
        })}
      </ul>
    </nav>
  );
}

const THEMES: [Theme, string][] = [
  ["system", "Same as the system"],
  ["light", "Light"],
  ["dark", "Dark"],
];

function Me() {
  const { session, logOut } = useSession();
  const [chosen, setChosen] = useState(theme);
  const act = async (key: string | number) => {
    if (key !== "log-out") {
      chooseTheme(key as Theme);
      setChosen(key as Theme);
      return;
    }
    try {
      await logOut();
    } catch (error) {
      failed("You are still logged in", error);
    }
  };
  const belongs = [...session.roles, ...session.groups.map((group) => `group ${shown(group)}`)].join(", ");
  return (
    <MenuTrigger>
      <Button className="button button-quiet me">
        <span className="avatar" aria-hidden="true">
          {session.principal.slice(0, 1).toUpperCase()}
        </span>
        <span className="bar-word">{shown(session.principal)}</span>
        <span className="visually-hidden">, theme and log-out</span>
      </Button>
      <Popover className="popover" placement="bottom end">
        <div className="me-who">
          <strong>{shown(session.principal)}</strong>
          <span>{belongs}</span>
        </div>
        <Menu className="menu" aria-label="Theme and log-out" onAction={act}>
          <MenuSection selectionMode="single" selectedKeys={[chosen]} disallowEmptySelection>
            <Header>Theme</Header>
            {THEMES.map(([id, name]) => (
              <MenuItem key={id} id={id} className="menu-item">
                {name}
              </MenuItem>
            ))}
          </MenuSection>
          <MenuItem id="log-out" className="menu-item menu-last">
            Log out
          </MenuItem>
        </Menu>
      </Popover>
    </MenuTrigger>
  );
}

/** `?` shows the keys; `g` and a letter open a page. Ignored in text fields. */
function useKeys(places: Place[], showHelp: () => void) {
  const latest = useRef(places);
  latest.current = places;
  useEffect(() => {
    let going = false;
    const pressed = (event: KeyboardEvent) => {
      if (event.defaultPrevented || !isShortcut(event)) return;
      if (event.key === "?") return showHelp();
      if (going) {
        const place = latest.current.find(({ key }) => key === event.key);
        going = false;
        if (place) {
          event.preventDefault();
          // Other listeners of the page must not handle this key.
          event.stopPropagation();
          navigate(place.path);
        }
      } else {
        going = event.key === "g";
      }
    };
    addEventListener("keydown", pressed, { capture: true });
    return () => removeEventListener("keydown", pressed, { capture: true });
  }, [showHelp]);
}
