"""The views of one thing, side by side with their keys; the address says which is open."""

from collections.abc import Mapping

import streamlit as st

from app.components.places import go_to_view, here
from app.components.plain import plain_html


def choose_view(heading: str, views: Mapping[str, str]) -> str:
    """Show the heading and a button a view; gives the open one, the first unless the address names another."""
    chosen = here("view") if here("view") in views else next(iter(views))
    st.html(f'<h1 class="world">{plain_html(heading)}</h1>')
    with st.container(horizontal=True, gap="small", key="views"):
        for number, (view, title) in enumerate(views.items(), 1):
            st.button(
                title,
                key=f"view_{view}",
                type="primary" if view == chosen else "secondary",
                shortcut=f"Alt+{number}",
                on_click=go_to_view,
                args=(view,),
            )
    return chosen
