
7
x0Placeholder*
dtype0*
shape:
3
x1Placeholder*
dtype0*
shape
:
#
RealDivRealDivx0x1*
T0
&
IdentityIdentityRealDiv*
T0