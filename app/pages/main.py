"""The navigation: the pages, and which of them the person may see."""

import streamlit as st

from app.services import services
from app.widgets.page_layout import STATIC_FOLDER, apply_style_sheet, listen_for_keys
from app.widgets.person import current_user

st.set_page_config(page_title="Showhow", page_icon=str(STATIC_FOLDER / "icon.svg"), layout="wide")
apply_style_sheet()
person = current_user(services().database)
pages = [st.Page("annotate/page.py", url_path="annotate", title="Annotate", icon=":material/edit_note:", default=True)]
pages.append(st.Page("ask/page.py", url_path="ask", title="Ask", icon=":material/forum:"))
if {"reviewer", "admin"} & set(person.roles):
    pages.append(st.Page("review/page.py", url_path="review", title="Review", icon=":material/rule:"))
pages.append(st.Page("library/page.py", url_path="library", title="Library", icon=":material/auto_stories:"))
pages.append(st.Page("verify/page.py", url_path="verify", title="Verify", icon=":material/fact_check:"))
pages.append(st.Page("worlds/page.py", url_path="worlds", title="Worlds", icon=":material/public:"))
pages.append(st.Page("tools/page.py", url_path="tools", title="Tools", icon=":material/build:"))
st.navigation(pages, position="top").run()
listen_for_keys()
